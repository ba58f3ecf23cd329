package api

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
)

// Serve answers requests on l until ctx is done. Then it stops accepting, finishes what was accepted, for at most
// l.Drain, and returns nil; what was not finished by then is cut off, and that is an error.
func (a *API) Serve(ctx context.Context, l net.Listener) error {
	limited := limitConnections(newPatient(l, a.log), a.limits.Connections, a.limits.ConnectionsEach)
	server := &http.Server{
		ConnState:         limited.observe,
		Handler:           a,
		ReadHeaderTimeout: a.limits.ReadHeader,
		IdleTimeout:       a.limits.Idle,
		MaxHeaderBytes:    a.limits.HeaderBytes,
		ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelDebug), // broken connections and bad handshakes
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(limited) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	a.streams.stop()
	a.log.Info("shutting down: finishing what was accepted", "limit", a.limits.Drain.String())
	drain, cancel := context.WithTimeout(context.Background(), a.limits.Drain)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		server.Close()
		<-served
		return errors.Join(errors.New("api: requests were cut off at shutdown"), err)
	}
	<-served
	return nil
}
