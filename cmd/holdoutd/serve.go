package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/internal/api"
	"github.com/holdoutd/holdoutd/internal/oidc"
	"github.com/holdoutd/holdoutd/internal/tracing"
)

// serveFlags are what serve and demo can be told.
type serveFlags struct {
	addr          string
	data          string
	ledger        string
	key           keySource
	allowNaive    bool
	acceptLost    bool
	anyFileSystem bool
	log           string
	metrics       string
	metricsToken  string
	traces        string // the collector's address
	answerTime    string
	sources       []string
	limits        api.Limits
	service       holdout.Limits
	tls           tlsFlags
	oidc          oidcFlags
	browser       bool // of a demo
}

const defaultAddr = "127.0.0.1:8080"

func (f *serveFlags) add(flags *pflag.FlagSet) {
	f.limits, f.service = api.DefaultLimits, holdout.DefaultLimits
	l, s := &f.limits, &f.service
	flags.StringVar(&f.addr, "addr", defaultAddr, "address to listen on; port 0 takes a free one")
	flags.BoolVar(&f.allowNaive, "allow-naive", false, "accept the mechanism naive, which has no guarantee (for experiments)")
	flags.BoolVar(&f.acceptLost, "accept-lost-ledger", false, "start although the ledger is lost, or does not know all holdouts; the holdouts that it does not know cannot be asked any more")
	flags.BoolVar(&f.anyFileSystem, "any-filesystem", false, "start although the data directory is on a network, in memory, or on another file system that may lose what was made durable or keeps no locks")
	flags.StringVar(&f.tls.cert, "tls-cert", "", "PEM file of the server's certificate chain; read again when it changes, and at SIGHUP")
	flags.StringVar(&f.tls.key, "tls-key", "", "PEM file of the certificate's private key")
	flags.BoolVar(&f.tls.insecureHTTP, "insecure-http", false, "serve other machines without TLS: keys travel in clear")
	flags.StringVar(&f.log, "log", "text", "log format: text or json")
	flags.StringVar(&f.answerTime, "answer-time", string(holdout.AnswerSoon), "when replies to questions leave: soon, or public: no sooner than public facts say that the work takes")
	flags.StringVar(&f.metrics, "metrics", string(api.MetricsPublic), "who may read /metrics: public (counters; the rest with an admin key), admin (with a key) or off")
	flags.StringVar(&f.metricsToken, "metrics-token", "", "file with a token of at least 32 characters that reads all of /metrics and nothing else, for a scraper")
	flags.StringVar(&f.traces, "otlp-endpoint", "", "OpenTelemetry collector that is told what requests did, as http://127.0.0.1:4318: spans with routes, statuses, query types and counts, and no value, name or duration of a question; headers: "+tracing.HeadersVariable)
	flags.Float64Var(&l.Rate, "rate", l.Rate, "requests a second of one key, on average; negative: no limit")
	flags.IntVar(&l.Burst, "burst", l.Burst, "requests of one key at once")
	flags.IntVar(&l.Uploads, "uploads", l.Uploads, "uploads at the same time")
	flags.IntVar(&l.Connections, "connections", l.Connections, "connections at the same time; one that has nothing to do is closed for a new one")
	flags.IntVar(&l.ConnectionsEach, "connections-each", l.ConnectionsEach, "connections of one address (of IPv6: of one /64 network) at the same time; behind a proxy give it as many as --connections (default: half of --connections)")
	flags.IntVar(&s.Questions, "questions", s.Questions, "requests that ask, explain or plan at the same time, at most half of them of one key; more wait, each key in its own line")
	flags.Var((*size)(&s.Memory), "memory", "memory that the process is to stay within, as 4GiB; requests share half of it, and one key has at most half of that (default: half of the machine's or of the control group's)")
	flags.Int64Var(&s.Work, "work", s.Work, "most work of one request, in nanoseconds of one processor")
	flags.Int64Var(&s.UploadBytes, "upload-bytes", s.UploadBytes, "largest upload")
	flags.IntVar(&s.BatchQueries, "batch-queries", s.BatchQueries, "most queries of one batch")
	flags.Int64Var(&s.AnswerBytes, "answer-bytes", s.AnswerBytes, "most bytes of the answers of one batch together")
	flags.Int64Var(&l.BatchBytes, "batch-bytes", l.BatchBytes, "largest body of one batch")
	flags.IntVar(&s.QueryBytes, "query-bytes", s.QueryBytes, "largest query")
	flags.IntVar(&s.ModelBytes, "model-bytes", s.ModelBytes, "largest model that is sent by itself")
	flags.DurationVar(&l.ReadHeader, "read-header", l.ReadHeader, "time for the head of a request to arrive")
	flags.DurationVar(&l.ReadBody, "read-body", l.ReadBody, "time for the body of a request to arrive, uploads excepted")
	flags.DurationVar(&l.UploadIdle, "upload-idle", l.UploadIdle, "longest pause within an upload")
	flags.DurationVar(&l.UploadTime, "upload-time", l.UploadTime, "longest upload")
	flags.DurationVar(&l.Handle, "handle", l.Handle, "time to work on a request, uploads excepted")
	flags.DurationVar(&l.Drain, "drain", l.Drain, "time to finish what was accepted at shutdown")
}

// checkLimits refuses limits that are none. The API takes its default for a number that is not positive, which nobody means who
// writes one.
func checkLimits(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(flag *pflag.Flag) {
		text, ok := flag.Value.String(), true
		switch flag.Value.Type() {
		case "int", "int64":
			n, parseErr := strconv.ParseInt(text, 10, 64)
			ok = parseErr == nil && n > 0
		case "duration":
			d, parseErr := time.ParseDuration(text)
			ok = parseErr == nil && d > 0
		case "float64": // --rate: negative is no limit
			x, parseErr := strconv.ParseFloat(text, 64)
			ok = parseErr == nil && x != 0 && !math.IsNaN(x) && !math.IsInf(x, 0)
		}
		if !ok && err == nil {
			err = misuse("--%s must be more than 0, not %s; leave it out for the default", flag.Name, text)
		}
	})
	return err
}

func serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the HTTP interface",
		Long: `Serves the HTTP interface from one data directory. The first start writes an admin key to DIR/admin.key (mode 0600).
DIR/connect.json tells clients on this machine where the server is; holdoutd ask and Python's holdoutd.connect() read it.
Started on a terminal, it tells those of your user in other folders too, until it ends.
When it can answer it logs one line "listening" with its address. SIGINT or SIGTERM finishes what was accepted; a second
one exits at once.`,
		Example: `  holdoutd serve
  holdoutd serve --data /srv/holdoutd --addr 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem
  holdoutd serve --memory 4GiB --upload-bytes 8000000000
  holdoutd serve --data /shared/holdoutd --ledger @/etc/holdoutd/ledger
  holdoutd serve --oidc-issuer https://issuer.example --oidc-audience holdoutd
  holdoutd serve --key-command 'vault kv get -field=key secret/holdoutd'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkLimits(cmd.Flags()); err != nil {
				return err
			}
			logger, err := f.logger(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			forget := func() {}
			defer func() { forget() }()
			return f.serve(cmd.Context(), logger, func(_ context.Context, _ *holdout.Service, addr net.Addr) error {
				if terminalWidth(cmd.OutOrStdout()) > 0 { // a person started it, and not a machine whose user has other servers
					forget = f.tellUserOf(addr)
				}
				return nil
			})
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&f.data, "data", "holdoutd-data", "data directory; made if it is not there")
	cmd.Flags().StringVar(&f.ledger, "ledger", "", ledgerHelp)
	cmd.Flags().StringArrayVar(&f.sources, "source", nil, sourceHelp)
	f.oidc.add(cmd.Flags())
	f.key.add(cmd.Flags())
	return cmd
}

func (f *serveFlags) logger(w io.Writer) (*slog.Logger, error) {
	switch f.log {
	case "text":
		return slog.New(slog.NewTextHandler(w, nil)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, nil)), nil
	}
	return nil, misuse("--log must be text or json, not %q", f.log)
}

// tellUserOf writes the user's file for this server, if it has its admin key and the user a home; forget removes it.
func (f *serveFlags) tellUserOf(addr net.Addr) (forget func()) {
	key, err := filepath.Abs(filepath.Join(f.data, "admin.key"))
	if err == nil {
		_, err = os.Stat(key)
	}
	if err != nil {
		return func() {}
	}
	forget, _ = tellUser(connection{URL: urlOf(addr, f.tls.enabled()), KeyFile: key}) // else it is found by its data directory
	return forget
}

// scraper reads the token of --metrics-token.
func (f *serveFlags) scraper() (*api.MetricsToken, error) {
	if f.metricsToken == "" {
		return nil, nil
	}
	if api.MetricsAccess(f.metrics) == api.MetricsOff {
		return nil, misuse("--metrics-token reads /metrics, which --metrics off removes")
	}
	text, err := os.ReadFile(f.metricsToken)
	if err != nil {
		return nil, fmt.Errorf("--metrics-token: %w", err)
	}
	token, err := api.ParseMetricsToken(text)
	if err != nil {
		return nil, fmt.Errorf("--metrics-token %s: %w", f.metricsToken, err)
	}
	return token, nil
}

// serve answers until a signal comes. ready is called with the service open and the address bound: requests that come
// before it returns wait.
func (f *serveFlags) serve(ctx context.Context, logger *slog.Logger, ready func(ctx context.Context, s *holdout.Service, addr net.Addr) error) (err error) {
	switch api.MetricsAccess(f.metrics) {
	case api.MetricsPublic, api.MetricsAdmin, api.MetricsOff:
	default:
		return misuse("--metrics must be public, admin or off, not %q", f.metrics)
	}
	scraper, err := f.scraper()
	if err != nil {
		return err
	}
	if err := errors.Join(f.limits.Check(), f.service.Check()); err != nil {
		var limit *holdout.LimitError
		errors.As(err, &limit)
		return misuse("--%s is %v; it must be at least %v", limit.Name, limit.Value, limit.Least)
	}
	issuer, err := f.oidc.issuer(logger)
	if err != nil {
		return err
	}
	if issuer != nil {
		defer issuer.Close()
	}
	var traces *tracing.Tracer
	if f.traces != "" {
		if traces, err = tracing.New(f.traces, version(), logger); err != nil {
			return misuse("--otlp-endpoint: %w", err)
		}
		defer traces.Close()
	}
	limitMemory(f.service.Memory)
	ctx, stop := untilSignal(ctx)
	defer stop()
	listener, err := net.Listen("tcp", f.addr)
	if err != nil {
		return listenError(f.addr, err)
	}
	defer listener.Close()
	if err := f.tls.check(listener.Addr()); err != nil {
		return err
	}
	if f.tls.enabled() {
		secure, cert, err := f.tls.listen(listener, logger)
		if err != nil {
			return err
		}
		listener = secure
		defer onHangup(cert.reload)()
	}
	service, err := f.open(ctx, logger, issuer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, service.Close()) }()
	if ready != nil {
		if err := ready(ctx, service, listener.Addr()); err != nil {
			return err
		}
	}
	if err := tellOf(f.data, connection{URL: urlOf(listener.Addr(), f.tls.enabled()), KeyFile: "admin.key"}); err != nil {
		logger.Warn("clients on this machine will not find the server by its data directory", "error", err)
	}
	handler := api.New(service, api.Options{Logger: logger, Limits: f.limits, Metrics: api.MetricsAccess(f.metrics), Scraper: scraper, Traces: traces, Version: version()})
	logger.Info("listening", "addr", listener.Addr().String(), "data", f.data, "version", version(), "tls", f.tls.enabled())
	if err := handler.Serve(ctx, listener); err != nil {
		return err
	}
	logger.Info("stopped")
	return nil
}

// onHangup calls f at each SIGHUP until stop is called.
func onHangup(f func()) (stop func()) {
	hangups, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		for {
			select {
			case <-hangups:
				f()
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(done)
	}
}

// untilSignal is done at the first SIGINT or SIGTERM. By then a second one has its usual effect: it ends the process.
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	signalled, stop := signal.NotifyContext(parent, syscall.SIGINT, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	context.AfterFunc(signalled, func() {
		stop()
		cancel()
	})
	return ctx, stop
}

func (f *serveFlags) open(ctx context.Context, logger *slog.Logger, issuer *oidc.Issuer) (*holdout.Service, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("this program's own file cannot be found, which is needed to decode uploads: %w", err)
	}
	address, err := ledgerAddress(f.ledger)
	if err != nil {
		return nil, err
	}
	key, err := f.key.read(ctx)
	if err != nil {
		return nil, err
	}
	sources, err := readSources(f.sources)
	if err != nil {
		return nil, err
	}
	service, err := holdout.Open(ctx, holdout.Options{
		Dir: f.data, Ledger: address, Sources: sources, Issuer: issuer, Key: key, AllowNaive: f.allowNaive, AnswerTime: holdout.AnswerTime(f.answerTime), AcceptLostLedger: f.acceptLost, AnyFileSystem: f.anyFileSystem, Logger: logger, Decoder: []string{self, decodeCommand}, Limits: f.service, Version: version(),
	})
	var path *os.PathError
	var ours *holdout.Error
	switch {
	case errors.As(err, &ours):
		return nil, errors.New(ours.Detail)
	case errors.Is(err, ledger.ErrInUse):
		return nil, fmt.Errorf("the data directory %s is in use by another holdoutd; stop that one or give another --data (%w)", f.data, err)
	case errors.As(err, &path):
		return nil, fmt.Errorf("the data directory %s cannot be used: %s: %w", f.data, path.Path, path.Err)
	}
	return service, err
}

func listenError(addr string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("the address %s is taken by another program; stop that one or give another --addr (port 0 takes a free one)", addr)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("there is no permission to listen on %s; ports below 1024 need it", addr)
	}
	return fmt.Errorf("cannot listen on %s: %w", addr, err)
}
