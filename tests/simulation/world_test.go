package simulation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
)

const (
	holdouts  = 3  // gaussian, thresholdout, gaussian in rounds
	queriesOf = 16 // of which people ask, of each holdout

	ledgerName = "ledger.db"

	// calm is how long after a trouble a request may still suffer from it: the deadline of a commit, and what the ledger waits before it recovers.
	calm = holdout.LedgerDeadline + 6*time.Second
	// refusal is how long an owner may stand still and must be found alive all the same: half of what it is asked for.
	refusal = 2 * time.Second
	// aware is how long after it stood still an owner may not know that it lost the ledger.
	aware = 1100 * time.Millisecond
	// waits is how long a person waits for a reply; none takes as long, whatever the disk does.
	waits = 2 * time.Minute
	// patience is more than any run takes.
	patience = 2 * time.Hour
)

var admin = holdout.Principal{KeyID: "key_admin", Name: "admin", Scope: holdout.Admin}

// start is what every run begins with: a data directory with some holdouts of which nothing was asked.
type start struct {
	dir    string
	ledger []byte
	ids    [holdouts]string
}

// world is a run.
type world struct {
	plan   plan
	start  *start
	disk   *disk
	mounts [2]*mount

	mu       sync.Mutex
	base     string // of the data directory
	renamed  int    // how often the data directory got another name, so that who had it finds it no more
	service  *holdout.Service
	process  *process
	ghost    *holdout.Service // an owner that lost its ledger, and does not know
	learns   time.Time        // when it must know
	alive    []*process
	ended    int       // services, until now
	trouble  time.Time // the last moment of one
	harmed   bool
	trace    []string
	wrong    error
	closings sync.WaitGroup

	told     [holdouts]map[int][]byte // answers, by query
	sent     [holdouts]map[int]bool
	spent    [holdouts]int64
	outcomes map[string][]string // by person and Idempotency-Key

	deleted [holdouts]progress
	keys    []*apiKey
}

// progress is how far something has come that is done once.
type progress uint8

const (
	not   progress = iota
	begun          // it may have happened
	said           // it was said that it has
)

// apiKey is a key that somebody was given.
type apiKey struct {
	person     int
	id, secret string
	revoked    progress
}

func (w *world) log(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, time.Now().Format(stamp)+ofAnyMachine.ReplaceAllString(fmt.Sprintf(format, args...), ""))
}

// stamp is the time of what is told: each event of the disk has its own, so that another order is another text.
const stamp = "04:05.000000000 "

// ofAnyMachine is what another machine, or another process, says otherwise.
var ofAnyMachine = regexp.MustCompile(`/\S*/|process \d+ on \S+`)

// violated takes note of a promise that was broken.
func (w *world) violated(format string, args ...any) {
	w.log("WRONG: "+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wrong == nil {
		w.wrong = fmt.Errorf(format, args...)
	}
}

// run lets a plan happen, and says what was wrong. It must be called in a bubble of testing/synctest.
func run(p plan, from *start, base string) (wrong error, trace []string) {
	w := &world{plan: p, start: from, disk: newDisk(p.seed), base: base, outcomes: map[string][]string{}}
	w.mounts = [2]*mount{newMount(1), newMount(2)}
	for i := range holdouts {
		w.told[i], w.sent[i] = map[int][]byte{}, map[int]bool{}
	}
	w.disk.put(ledgerName, from.ledger)
	if err := link(from.dir, w.dir()); err != nil {
		return err, nil
	}
	defer os.RemoveAll(filepath.Dir(base))
	watch := time.AfterFunc(patience, func() { panic(fmt.Sprintf("it hangs: %v", p)) }) // and the stacks say where
	defer watch.Stop()
	w.open()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var people sync.WaitGroup
		for i := range p.people {
			people.Go(func() { w.live(i, rand.New(rand.NewPCG(p.seed, uint64(100+i)))) })
		}
		people.Wait()
	}()
	w.befall(done)
	w.conclude()
	slices.Sort(w.trace)
	return w.wrong, w.trace
}

func (w *world) dir() string { return fmt.Sprintf("%s-%d", w.base, w.renamed) }

// link makes a data directory whose tables are those of another one.
func link(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := to + strings.TrimPrefix(path, from)
		switch {
		case e.IsDir():
			return os.MkdirAll(name, 0o700)
		case strings.HasPrefix(e.Name(), ledgerName):
			return nil
		}
		return os.Link(path, name) // what changes is replaced, never overwritten
	})
}

// befall lets the events happen, and starts the server again when it has ended, until the people are done.
func (w *world) befall(done <-chan struct{}) {
	for events := w.plan.events; ; {
		var next <-chan time.Time
		if len(events) > 0 {
			next = time.After(events[0].pause)
		}
		select {
		case <-w.disk.ended:
			w.again()
		case <-next:
			w.happen(events[0])
			events = events[1:]
		case <-done:
			return
		}
	}
}

// troubled takes note that the machine is not well now.
func (w *world) troubled() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trouble = time.Now()
}

func (w *world) set(change func(d *disk)) {
	w.disk.mu.Lock()
	defer w.disk.mu.Unlock()
	change(w.disk)
}

func (w *world) happen(e event) {
	w.log("%s (%d, %v)", e.kind, e.calls, e.length)
	w.troubled()
	switch e.kind {
	case powerOff, kill:
		w.set(func(d *disk) {
			d.endAt, d.ends = d.calls+e.calls, func() { w.end(e.kind == powerOff, e.other) }
		})
	case restart:
		w.restart()
	case failSyncs:
		w.set(func(d *disk) { d.failSyncs = e.calls })
	case failWrites:
		w.set(func(d *disk) { d.failWrites = e.calls })
	case failReads:
		w.set(func(d *disk) { d.failReads = e.calls })
	case slow:
		w.set(func(d *disk) { d.slow = e.length })
	case full:
		w.set(func(d *disk) { d.full = true })
		time.Sleep(e.length)
		w.set(func(d *disk) { d.full = false })
		w.troubled()
	case second:
		w.second(e)
	case harm:
		w.harm(e)
	}
}

// end is the end of the machine, or of the server's process, in the middle of a change. The disk's lock is held.
func (w *world) end(machine, other bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended++
	w.trouble = time.Now()
	w.rename()
	if !machine {
		w.process.die()
		w.trace = append(w.trace, time.Now().Format(stamp)+"killed")
	} else {
		for _, p := range w.alive {
			p.die()
		}
		w.disk.powerOff()
		w.trace = append(w.trace, time.Now().Format(stamp)+"off")
	}
	if other {
		slices.Reverse(w.mounts[:])
	}
}

// rename gives the data directory another name: who is dead changes nothing in it any more.
func (w *world) rename() {
	old := w.dir()
	w.renamed++
	if err := os.Rename(old, w.dir()); err != nil {
		panic(err)
	}
}

// hasEnded reports whether the machine, or the server's process, has ended and nobody has started the server again.
func (w *world) hasEnded() bool {
	select {
	case <-w.disk.ended:
		return true
	default:
		return false
	}
}

// rearm makes room for the next end.
func (w *world) rearm() { w.set(func(d *disk) { d.ended, d.endAt = make(chan struct{}), 0 }) }

// again starts the server after its end.
func (w *world) again() {
	w.rearm()
	w.mu.Lock()
	old, dead := w.service, w.process
	w.service = nil
	w.mu.Unlock()
	dead.kill()
	w.closings.Go(func() { w.bury(old, dead) })
	w.open()
}

// bury ends what is left of a process that is dead already.
func (w *world) bury(s *holdout.Service, p *process) {
	if s != nil {
		s.Close()
	}
	p.free()
}

// healthy reports whether nothing was wrong with the machine for so long that nobody may suffer from it.
func (w *world) healthy() bool {
	w.disk.mu.Lock()
	d := w.disk
	now := d.full || d.failSyncs+d.failWrites+d.failReads > 0 || d.slow > 0 || d.lastFault.After(time.Now().Add(-calm))
	w.disk.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	return !now && !w.harmed && w.trouble.Before(time.Now().Add(-calm))
}

// open starts a server, until it is up.
func (w *world) open() {
	for begun := time.Now(); ; {
		p := w.disk.process(w.mounts[0])
		w.mu.Lock()
		dir := w.dir()
		w.alive = append(w.alive, p)
		w.process = p
		w.mu.Unlock()
		mountAt(dir, p)
		w.set(func(d *disk) { d.failReads = 0 }) // how a start reads is no promise
		s, err := openService(dir, p)
		if err == nil {
			w.log("up")
			w.mu.Lock()
			w.service = s
			w.mu.Unlock()
			return
		}
		w.log("it does not start\t%v", line(err))
		switch {
		case w.hasEnded():
			w.rearm()
		case w.healthy() || time.Since(begun) > time.Minute && !w.disk.full:
			w.violated("the server does not start: %v", err)
			return
		}
		p.kill()
		p.free()
		time.Sleep(time.Second)
	}
}

func openService(dir string, p *process) (*holdout.Service, error) {
	return holdout.Open(context.Background(), holdout.Options{Dir: dir, Disk: p, AnyFileSystem: true, Decoder: []string{"/bin/false"}, Version: "simulation"})
}

// restart ends the server in order, and starts it again.
func (w *world) restart() {
	w.mu.Lock()
	s, p := w.service, w.process
	w.service = nil
	w.ended++
	w.mu.Unlock()
	if s == nil {
		return
	}
	fine := w.healthy()
	if err := s.Close(); err != nil && fine {
		w.violated("close: %v", err)
	}
	p.kill()
	p.free()
	w.rearm()
	w.troubled()
	w.open()
}

// second is another server on the same ledger by another mount, while the first one may stand still.
func (w *world) second(e event) {
	w.mu.Lock()
	first, owner := w.service, w.process
	w.mu.Unlock()
	if first == nil {
		return
	}
	w.set(func(*disk) { owner.standing = time.Now().Add(e.length) })
	p := w.disk.process(w.mounts[1])
	w.mu.Lock()
	w.learns = time.Now().Add(e.length + aware)
	w.alive = append(w.alive, p)
	target := w.dir()
	dir := fmt.Sprintf("%s-second-%d", w.base, len(w.alive))
	w.mu.Unlock()
	if err := os.Symlink(target, dir); err != nil {
		panic(err)
	}
	mountAt(dir, p)
	faults := w.faults()
	s, err := openService(dir, p)
	w.troubled()
	ended := w.hasEnded() // befall looks at it
	switch {
	case err != nil:
		w.log("second: no\t%v", line(err))
		if !errors.Is(err, ledger.ErrInUse) && !ended && w.faults() == faults && e.length == 0 {
			w.violated("a second server was not told that the ledger is in use: %v", err)
		}
		p.kill()
		p.free()
	case e.length <= refusal && !ended && w.faults() == faults:
		w.violated("a second server began although the owner was there")
		fallthrough
	default:
		w.log("second: up")
		w.mu.Lock()
		w.ghost, w.service, w.process = w.service, s, p
		w.ended++
		w.mu.Unlock()
		w.closings.Go(func() { // the first one learns it when it goes on, and somebody ends it some time
			time.Sleep(e.length + 5*time.Second)
			w.mu.Lock()
			w.ghost = nil
			w.mu.Unlock()
			first.Close()
			owner.kill()
			owner.free()
		})
	}
}

func (w *world) faults() int {
	w.disk.mu.Lock()
	defer w.disk.mu.Unlock()
	return w.disk.faults
}

// harm cuts the log from outside, or writes over it, and starts the server again in order.
func (w *world) harm(e event) {
	w.mu.Lock()
	w.harmed = true
	w.mu.Unlock()
	w.set(func(d *disk) {
		f := d.names[ledgerName+"-wal"]
		if f == nil || len(f.cache) == 0 {
			return
		}
		place := e.calls % len(f.cache)
		switch e.calls % 3 {
		case 0:
			f.truncate(place)
		case 1:
			f.truncate(0)
		default:
			f.write([]byte("written from outside"), place)
		}
		f.flush(always)
	})
	time.Sleep(e.length)
	w.restart()
}

// live is what a person does.
func (w *world) live(person int, r *rand.Rand) {
	for _, q := range w.plan.people[person] {
		time.Sleep(q.pause)
		answered := false
		for range q.tries {
			if answered = w.send(person, q, r); answered || w.over() {
				break
			}
			time.Sleep(20*time.Millisecond + time.Duration(r.Int64N(int64(4*time.Second)>>r.IntN(5))))
		}
		for _, pause := range q.again {
			if !answered {
				break
			}
			time.Sleep(pause)
			w.send(person, q, r)
		}
	}
}

func (w *world) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wrong != nil
}

// send sends a request once, and looks at what comes back.
func (w *world) send(person int, q request, r *rand.Rand) (answered bool) {
	w.mu.Lock()
	s, ended := w.service, w.ended
	old := w.ghost != nil && r.IntN(3) == 0
	if old {
		s, ended = w.ghost, -1
	}
	told, spent := map[int]bool{}, int64(0)
	gone := w.deleted[q.holdout] == said
	if q.kind == ask {
		for i := range w.told[q.holdout] {
			told[i] = true
		}
		spent = w.spent[q.holdout]
	}
	w.mu.Unlock()
	if s == nil {
		return false
	}
	switch q.kind {
	case ready:
		return w.ready(s, ended)
	case makeKey, revoke, remove:
		return w.administer(s, person, q, ended)
	}
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(q.leaves, waits))
	defer cancel()
	who := holdout.Principal{KeyID: fmt.Sprintf("key_%d", person), Name: "person", Scope: holdout.Analyst}
	key := ""
	if q.key > 0 {
		key = fmt.Sprintf("key %d", q.key)
	}
	var batch []json.RawMessage
	w.mu.Lock()
	for _, i := range q.queries {
		w.sent[q.holdout][i] = true
		batch = append(batch, json.RawMessage(query(i)))
	}
	w.mu.Unlock()
	healthy := w.healthy()
	b, err := s.AskBatch(ctx, who, w.start.ids[q.holdout], batch, q.partial, key)
	if ctx.Err() != nil && q.leaves == 0 {
		w.violated("person %d, holdout %d %v: no answer in %v", person, q.holdout, q.queries, waits)
	}
	if err != nil {
		if old && w.mayBeOld() { // it reads what another writes
			return false
		}
		return w.refused(person, q, err, healthy && q.leaves == 0 && w.healthy() && w.still(ended))
	}
	if gone && !old {
		w.violated("holdout %d was deleted, and answers", q.holdout)
	}
	w.look(person, q, b, told, spent, func() bool { return old && w.mayBeOld() || w.wasHarmed() && w.says(s, q.holdout) })
	return true
}

// mayBeOld reports whether a server that lost its ledger need not know that yet.
func (w *world) mayBeOld() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Before(w.learns)
}

func (w *world) wasHarmed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.harmed
}

// says reports whether the holdout's card says that the ledger is not what it was.
func (w *world) says(s *holdout.Service, h int) bool {
	card, err := s.Card(context.Background(), admin, w.start.ids[h])
	return err == nil && card.State != ""
}

// still reports whether the server is the one that it was.
func (w *world) still(ended int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended == ended
}

func query(i int) string { return fmt.Sprintf(`{"type":"mean","of":"x","range":[0,%d]}`, i+1) }

// refused looks at an error.
func (w *world) refused(person int, q request, err error, healthy bool) (answered bool) {
	w.log("person %d, holdout %d %v: kind %d\t%s", person, q.holdout, q.queries, holdout.KindOf(err), line(err))
	w.mu.Lock()
	harmed := w.harmed
	w.mu.Unlock()
	kind := holdout.KindOf(err)
	switch {
	case kind == holdout.BudgetExhausted:
		return true
	case kind == holdout.NotFound && w.isDeleted(q.holdout) != not:
		return true
	case kind == holdout.Unavailable && !healthy:
	case harmed && (kind == holdout.RolledBack || kind == holdout.Damaged):
	default:
		w.violated("person %d, holdout %d %v: %v", person, q.holdout, q.queries, err)
	}
	return false
}

func (w *world) isDeleted(h int) progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.deleted[h]
}

// administer makes or revokes a key, or deletes a holdout.
func (w *world) administer(s *holdout.Service, person int, q request, ended int) (answered bool) {
	ctx, healthy := context.Background(), w.healthy()
	var err error
	switch q.kind {
	case makeKey:
		var key holdout.KeyInfo
		var secret string
		if key, secret, err = s.CreateKey(ctx, admin, fmt.Sprint("person ", person), holdout.Analyst); err == nil {
			w.mu.Lock()
			w.keys = append(w.keys, &apiKey{person: person, id: key.ID, secret: secret})
			w.mu.Unlock()
		}
	case revoke:
		k := w.keyOf(person)
		if k == nil {
			return true
		}
		w.mu.Lock()
		k.revoked = max(k.revoked, begun)
		w.mu.Unlock()
		if err = s.RevokeKey(ctx, admin, k.id); err == nil {
			w.mu.Lock()
			k.revoked = said
			w.mu.Unlock()
			if _, err := s.Authenticate(ctx, k.secret); err == nil {
				w.violated("a revoked key opens")
			}
		}
	case remove:
		w.mu.Lock()
		before := w.deleted[q.holdout]
		w.deleted[q.holdout] = max(before, begun)
		w.mu.Unlock()
		err = s.Delete(ctx, admin, w.start.ids[q.holdout])
		if holdout.KindOf(err) == holdout.NotFound && err != nil && before != not {
			err = nil
		}
		if err == nil {
			w.mu.Lock()
			w.deleted[q.holdout] = said
			w.mu.Unlock()
		}
	}
	if err != nil {
		return w.refused(person, q, err, healthy && w.healthy() && w.still(ended))
	}
	w.log("person %d: %s", person, q.kind)
	return true
}

// keyOf is the key that a person was given last.
func (w *world) keyOf(person int) (last *apiKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.keys {
		if k.person == person {
			last = k
		}
	}
	return last
}

// ready asks whether the server is ready, and holds it to its word.
func (w *world) ready(s *holdout.Service, ended int) (answered bool) {
	healthy := w.healthy()
	err := s.Ready(context.Background())
	w.log("ready: %v\t%s", err == nil, line(err))
	if err != nil && healthy && w.healthy() && w.still(ended) {
		w.violated("not ready: %v", err)
	}
	return true
}

// look compares what was answered with what is known.
func (w *world) look(person int, q request, b holdout.BatchAnswer, told map[int]bool, spent int64, excused func() bool) {
	var outcome []string
	for n, item := range b.Answers {
		i := q.queries[n]
		outcome = append(outcome, string(item.Body)+item.NotAsked)
		if item.Body == nil {
			continue
		}
		w.mu.Lock()
		known, before := w.told[q.holdout][i]
		w.told[q.holdout][i] = item.Body
		w.mu.Unlock()
		switch {
		case before && !bytes.Equal(known, item.Body):
			w.violated("holdout %d, query %d: two answers:\n%s\n%s", q.holdout, i, known, item.Body)
		case told[i] && !item.Replayed:
			w.violated("holdout %d, query %d was answered and told, and was asked again", q.holdout, i)
		}
	}
	now := b.Budget.Questions.Of - b.Budget.Questions.Left
	w.log("person %d, holdout %d %v: %s\tspent %d", person, q.holdout, q.queries, digest(outcome), now)
	w.mu.Lock()
	w.spent[q.holdout] = max(w.spent[q.holdout], now)
	name := fmt.Sprintf("%d %d", person, q.key)
	first, again := w.outcomes[name]
	if q.key > 0 && !again {
		w.outcomes[name] = outcome
	}
	w.mu.Unlock()
	if now < spent && !excused() {
		w.violated("holdout %d: %d questions were spent, and now %d", q.holdout, spent, now)
	}
	if q.key > 0 && again && !slices.Equal(first, outcome) {
		w.violated("person %d: two outcomes under key %d:\n%v\n%v", person, q.key, first, outcome)
	}
}

// conclude looks at everything once more when nothing happens any more.
func (w *world) conclude() {
	w.set(func(d *disk) {
		d.full, d.failReads, d.failSyncs, d.failWrites, d.slow, d.endAt = false, 0, 0, 0, 0, 0
	})
	if w.hasEnded() {
		w.again()
	}
	w.closings.Wait()
	time.Sleep(2 * calm)
	w.mu.Lock()
	s, p, harmed := w.service, w.process, w.harmed
	w.mu.Unlock()
	if s == nil {
		return
	}
	if err := s.Ready(context.Background()); err != nil && !harmed {
		w.violated("at last it is not ready: %v", err)
	}
	for h := range holdouts {
		w.review(s, h, harmed)
	}
	for _, k := range w.keys {
		_, err := s.Authenticate(context.Background(), k.secret)
		if (err == nil) != (k.revoked == not) && k.revoked != begun {
			w.violated("at last the key of person %d, revoked %v: %v", k.person, k.revoked == said, err)
		}
	}
	if err := s.Close(); err != nil && !harmed {
		w.violated("at last it does not close: %v", err)
	}
	p.kill()
	p.free()
	if w.plan.seed%4 == 0 { // it takes an eighth of a run
		w.verify()
	}
}

// review asks for all that was told of a holdout, and reads its chain.
func (w *world) review(s *holdout.Service, h int, harmed bool) {
	var all []int
	var batch []json.RawMessage
	for i := range queriesOf {
		if w.told[h][i] != nil {
			all = append(all, i)
			batch = append(batch, json.RawMessage(query(i)))
		}
	}
	ctx := context.Background()
	if len(all) > 0 {
		b, err := s.AskBatch(ctx, admin, w.start.ids[h], batch, false, "")
		switch kind := holdout.KindOf(err); {
		case err == nil && w.deleted[h] == said:
			w.violated("at last holdout %d, which was deleted, answers", h)
		case err == nil:
			for n, item := range b.Answers {
				if !item.Replayed || !bytes.Equal(item.Body, w.told[h][all[n]]) {
					w.violated("at last holdout %d answers query %d otherwise, replayed %v:\n%s\n%s", h, all[n], item.Replayed, w.told[h][all[n]], item.Body)
				}
			}
		case harmed && (kind == holdout.RolledBack || kind == holdout.Damaged):
		case kind == holdout.NotFound && w.deleted[h] != not:
		default:
			w.violated("at last holdout %d: %v", h, err)
		}
	}
	var export bytes.Buffer
	if err := s.Export(ctx, admin, w.start.ids[h], &export); err != nil {
		if holdout.KindOf(err) == holdout.NotFound && w.deleted[h] != not && len(all) == 0 { // a draft, of which nothing was shown
			return
		}
		w.violated("export of holdout %d: %v", h, err)
		return
	}
	report, err := ledger.VerifyExport(&export)
	if err != nil {
		w.violated("the chain of holdout %d: %v", h, err)
		return
	}
	w.log("holdout %d: %d answers, %s", h, report.Answers, report.Head)
	if report.Deleted != (w.deleted[h] == said) && w.deleted[h] != begun {
		w.violated("the chain of holdout %d says deleted %v", h, report.Deleted)
	}
	if int(report.Answers) > len(w.sent[h]) || report.Voids > 0 || !harmed && int(report.Answers) < len(w.told[h]) {
		w.violated("holdout %d has %d answers and %d voids; %d queries were sent, %d told", h, report.Answers, report.Voids, len(w.sent[h]), len(w.told[h]))
	}
}

// verify lays the files that are left on the machine's own disk, and reads them there, by SQLite's own file system.
func (w *world) verify() {
	name := filepath.Join(w.dir(), ledgerName)
	for _, suffix := range []string{"", "-wal"} {
		if content := w.disk.image(ledgerName + suffix); content != nil {
			if err := os.WriteFile(name+suffix, content, 0o600); err != nil {
				w.violated("%v", err)
				return
			}
		}
	}
	if _, err := sqlite.Verify(context.Background(), name); err != nil {
		w.violated("verify: %v", err)
	}
}

// line is an error in a line.
func line(err error) string {
	if err == nil {
		return "yes"
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}
