package simulation

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// sector is what a disk writes whole or not at all, in bytes.
const sector = 512

// disk is a disk in memory, with what lies on it and what the machine believes to lie on it.
//
// What is written goes to the machine's memory. Sync brings it to the medium; so does the machine by itself, now and then, in any order. When the power goes, of all that was
// not synced any sector is the old or the new one, and so is any name that was made or removed since its directory was synced. After a sync that failed, some of what was
// written is on the medium, and the machine calls all of it clean, as Linux does: it can be read until the power goes, and no later sync writes it.
type disk struct {
	mu     sync.Mutex
	random *rand.Rand
	names  map[string]*inode // as the machine sees them
	synced map[string]*inode // on the medium
	next   uint64            // number of a file

	calls int           // that change something, until now
	endAt int           // the call in which the machine, or the process, ends; 0: none
	ends  func()        // what happens then; the disk's lock is held
	ended chan struct{} // closed then

	faults                           int           // that were met, until now
	lastFault                        time.Time     // when
	failSyncs, failWrites, failReads int           // so many of the next ones fail
	full                             bool          // no file grows
	slow                             time.Duration // the next sync takes so long
}

// inode is a file.
type inode struct {
	number uint64
	cache  []byte // as the machine sees it
	medium []byte
	dirty  []bool // sectors of cache that are not on the medium
	size   bool   // that of cache is not on the medium
}

func newDisk(seed uint64) *disk {
	return &disk{random: rand.New(rand.NewPCG(seed, 1)), names: map[string]*inode{}, synced: map[string]*inode{}, next: 1, ended: make(chan struct{})}
}

// put lays a file on the medium.
func (d *disk) put(name string, content []byte) {
	f := d.create(name)
	f.cache, f.medium, f.size = slices.Clone(content), slices.Clone(content), false
	f.dirty = make([]bool, sectors(len(content)))
	d.synced[name] = f
}

func sectors(size int) int { return (size + sector - 1) / sector }

func (d *disk) create(name string) *inode {
	f := &inode{number: d.next}
	d.next++
	d.names[name] = f
	return f
}

// flush brings sectors to the medium that which says yes to. The size goes with a sector beyond it.
func (f *inode) flush(which func() bool) {
	if f.size && which() {
		f.resize(len(f.cache))
	}
	for i, dirty := range f.dirty {
		if !dirty || !which() {
			continue
		}
		end := min((i+1)*sector, len(f.cache))
		if len(f.medium) < end {
			f.resize(end)
		}
		copy(f.medium[i*sector:end], f.cache[i*sector:end])
		f.dirty[i] = false
	}
	f.size = len(f.medium) != len(f.cache)
}

func (f *inode) resize(size int) {
	if size <= len(f.medium) {
		f.medium = f.medium[:size]
		return
	}
	f.medium = append(f.medium, make([]byte, size-len(f.medium))...)
}

func always() bool { return true }

func (d *disk) half() bool { return d.random.IntN(2) == 0 }

// sync brings a file to the medium; it is called with the lock.
func (d *disk) sync(f *inode) error {
	if d.failSyncs > 0 {
		d.failSyncs--
		d.fault()
		f.flush(d.half)
		clear(f.dirty) // and the machine calls it clean
		f.size = false
		return syscall.EIO
	}
	f.flush(always)
	return nil
}

func (d *disk) syncNames() {
	d.synced = maps.Clone(d.names)
}

// write changes a file as the machine sees it.
func (d *disk) write(f *inode, p []byte, at int) error {
	if d.failWrites > 0 {
		d.failWrites--
		d.fault()
		p = p[:d.random.IntN(len(p)+1)]
		f.write(p, at)
		return syscall.EIO
	}
	if d.full && at+len(p) > len(f.cache) {
		d.fault()
		if at < len(f.cache) {
			f.write(p[:len(f.cache)-at], at)
		}
		return syscall.ENOSPC
	}
	f.write(p, at)
	return nil
}

func (f *inode) write(p []byte, at int) {
	if len(p) == 0 {
		return
	}
	if end := at + len(p); end > len(f.cache) {
		f.grow(end)
	}
	copy(f.cache[at:], p)
	for i := at / sector; i < sectors(at+len(p)); i++ {
		f.dirty[i] = true
	}
}

func (f *inode) grow(size int) {
	for i := len(f.cache) / sector; i < len(f.dirty); i++ { // what was half full changes its size
		f.dirty[i] = true
	}
	f.cache = append(f.cache, make([]byte, size-len(f.cache))...)
	f.dirty = append(f.dirty, make([]bool, sectors(size)-len(f.dirty))...)
	f.size = true
}

func (f *inode) truncate(size int) {
	switch {
	case size > len(f.cache):
		f.grow(size)
	case size < len(f.cache):
		f.cache, f.dirty, f.size = f.cache[:size], f.dirty[:sectors(size)], true
	}
}

func (d *disk) fault() { d.faults++; d.lastFault = time.Now() }

// background is what the machine brings to the medium by itself.
func (d *disk) background() {
	if d.random.IntN(8) > 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		if d.half() {
			d.names[name].flush(d.half)
		}
	}
}

// powerOff is the end of the machine.
func (d *disk) powerOff() {
	names := map[string]bool{}
	for name := range d.names {
		names[name] = true
	}
	for name := range d.synced {
		names[name] = true
	}
	after := map[string]*inode{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		f := d.synced[name]
		if d.names[name] != f && d.half() {
			f = d.names[name]
		}
		if f != nil {
			after[name] = f
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		f := after[name]
		f.flush(d.half)
		f.cache, f.size = slices.Clone(f.medium), false
		f.dirty = make([]bool, sectors(len(f.cache)))
	}
	d.names, d.synced = after, maps.Clone(after)
}

// image is a file as the machine sees it.
func (d *disk) image(name string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.names[name]; f != nil {
		return slices.Clone(f.cache)
	}
	return nil
}

// process is a process that uses a disk by one mount of it. It is a ledger.Disk.
type process struct {
	disk   *disk
	device uint64 // of the mount; locks reach no other one
	locks  map[string]*process

	mu       sync.Mutex // of shared
	shared   map[uint64]*shared
	dead     bool      // guarded by disk.mu: its calls come to nothing
	standing time.Time // guarded by disk.mu: until when it stands still where it looks at the owner's record
	stood    int       // goroutines, until now
}

// mount is a way to a disk, by which processes keep each other out.
type mount struct {
	device uint64
	locks  map[string]*process
}

func newMount(device uint64) *mount { return &mount{device: device, locks: map[string]*process{}} }

func (d *disk) process(m *mount) *process {
	return &process{disk: d, device: m.device, locks: m.locks, shared: map[uint64]*shared{}}
}

// kill ends a process as the kernel does: nothing more of it happens, and its locks are gone.
func (p *process) kill() {
	p.disk.mu.Lock()
	defer p.disk.mu.Unlock()
	p.die()
}

func (p *process) die() {
	p.dead = true
	maps.DeleteFunc(p.locks, func(_ string, who *process) bool { return who == p })
}

// change begins a call that changes something: the lock is held after it unless it fails.
func (p *process) change() error {
	d := p.disk
	d.mu.Lock()
	if !p.dead {
		d.calls++
		if d.calls == d.endAt {
			d.ends()
			close(d.ended)
		}
	}
	if p.dead {
		d.mu.Unlock()
		return syscall.EIO
	}
	d.background()
	return nil
}

// look begins a call that changes nothing.
func (p *process) look() error {
	d := p.disk
	d.mu.Lock()
	if p.dead {
		d.mu.Unlock()
		return syscall.EIO
	}
	if d.failReads > 0 {
		d.failReads--
		d.fault()
		d.mu.Unlock()
		return syscall.EIO
	}
	return nil
}

// syncFile is a sync, which takes its time.
func (p *process) syncFile(f *inode, directory bool) error {
	if err := p.change(); err != nil {
		return err
	}
	d := p.disk
	wait := time.Duration(50_000 + d.random.IntN(2_000_000))
	if d.slow > 0 {
		wait, d.slow = d.slow, 0
		d.fault()
	}
	d.mu.Unlock()
	time.Sleep(wait)
	if err := p.change(); err != nil { // the power can go while it waits
		return err
	}
	defer d.mu.Unlock()
	if directory {
		d.syncNames()
	}
	return d.sync(f)
}

// standStill waits where the process is to stand still.
func (p *process) standStill() {
	p.disk.mu.Lock()
	wait := time.Until(p.standing)
	if wait > 0 {
		p.stood++
		wait += time.Duration(p.stood) * time.Microsecond // they go on one after another, or nobody could repeat it
	}
	p.disk.mu.Unlock()
	time.Sleep(wait)
}

// Names of files are without their directory: each process sees the same ones by a path of its own.

func (p *process) VFS() string { return vfsName }

func (p *process) Create(path string) error {
	if err := p.change(); err != nil {
		return err
	}
	defer p.disk.mu.Unlock()
	if p.disk.names[filepath.Base(path)] == nil {
		p.disk.create(filepath.Base(path))
		p.disk.syncNames()
	}
	return nil
}

type unlock func()

func (u unlock) Close() error { u(); return nil }

func (p *process) Lock(path string) (io.Closer, error) {
	name, d := filepath.Base(path), p.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.dead {
		return nil, syscall.EIO
	}
	if who := p.locks[name]; who != nil {
		return nil, fmt.Errorf("%w: by its lock", ledger.ErrInUse)
	}
	p.locks[name] = p
	return unlock(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if p.locks[name] == p {
			delete(p.locks, name)
		}
	}), nil
}

func (p *process) CheckAccess(string) error { return nil }

func (p *process) Stat(name string) (fs.FileInfo, error) {
	if err := p.look(); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	defer p.disk.mu.Unlock()
	f := p.disk.names[filepath.Base(name)]
	if f == nil && filepath.Ext(name) != "" {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	if f == nil {
		return info{name: filepath.Base(name), device: p.device}, nil // the directory
	}
	return info{filepath.Base(name), f, int64(len(f.cache)), p.device}, nil
}

func (p *process) Remove(name string) error {
	if err := p.change(); err != nil {
		return err
	}
	defer p.disk.mu.Unlock()
	if p.disk.names[filepath.Base(name)] == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	delete(p.disk.names, filepath.Base(name))
	return nil
}

func (p *process) SameFile(a, b fs.FileInfo) bool { return a.(info).file == b.(info).file }
func (p *process) Device(i fs.FileInfo) uint64    { return i.(info).device }
func (p *process) OpenFile(name string, flag int) (ledger.File, error) {
	switch filepath.Ext(name) {
	case ".owner", ".asks":
		p.standStill()
	}
	begin := p.look
	if flag&os.O_CREATE != 0 {
		begin = p.change
	}
	if err := begin(); err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer p.disk.mu.Unlock()
	f := p.disk.names[filepath.Base(name)]
	if f == nil && flag&os.O_CREATE != 0 {
		f = p.disk.create(filepath.Base(name))
	}
	if f == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &opened{p, f, filepath.Base(name)}, nil
}

// opened is an open file. It is a ledger.File.
type opened struct {
	process *process
	file    *inode
	name    string
}

func (o *opened) ReadAt(p []byte, at int64) (int, error) {
	if err := o.process.look(); err != nil {
		return 0, err
	}
	defer o.process.disk.mu.Unlock()
	if at >= int64(len(o.file.cache)) {
		return 0, io.EOF
	}
	n := copy(p, o.file.cache[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (o *opened) WriteAt(p []byte, at int64) (int, error) {
	if err := o.process.change(); err != nil {
		return 0, err
	}
	defer o.process.disk.mu.Unlock()
	if err := o.process.disk.write(o.file, p, int(at)); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (o *opened) Stat() (fs.FileInfo, error) {
	if err := o.process.look(); err != nil {
		return nil, err
	}
	defer o.process.disk.mu.Unlock()
	return info{o.name, o.file, int64(len(o.file.cache)), o.process.device}, nil
}

func (o *opened) Sync() error  { return o.process.syncFile(o.file, false) }
func (o *opened) Close() error { return nil }

type info struct {
	name   string
	file   *inode
	size   int64
	device uint64
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return 0o600 }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.file == nil }
func (i info) Sys() any           { return nil }
