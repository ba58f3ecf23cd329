package simulation

import (
	"errors"
	"io"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// SQLite reaches a disk by a file system of its own (https://www.sqlite.org/vfs.html), which is registered once. A path leads to the process whose directory it is in.

const vfsName = "simulated"

var processes sync.Map // directory -> *process

// mountAt makes the files in dir those of a process's disk.
func mountAt(dir string, p *process) { processes.Store(dir, p) }
func unmountAt(dir string)           { processes.Delete(dir) }

// find is the process that a path of SQLite's leads to, and the file's name on its disk.
func find(name uintptr) (*process, string) {
	path := libc.GoString(name)
	p, _ := processes.Load(filepath.Dir(path))
	found, _ := p.(*process)
	return found, filepath.Base(path)
}

// The structures of SQLite's interface, as they lie in memory on machines of 64 bits.
type (
	vfs struct {
		version, fileBytes, pathBytes                                                                      int32
		next, name, data                                                                                   uintptr
		open, remove, access, fullPath, dlOpen, dlError, dlSym, dlClose, randomness, sleep, now, lastError uintptr
		nowInteger                                                                                         uintptr
	}
	methods struct {
		version                                                                                                int32
		close, read, write, truncate, sync, size, lock, unlock, reserved, control, sectorSize, characteristics uintptr
		shmMap, shmLock, shmBarrier, shmUnmap                                                                  uintptr
	}
	header struct{ methods, handle uintptr } // of an open file
)

var registration vfs
var calls methods

// address is a function as SQLite's code calls it.
func address[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

// at is what lies at an address in SQLite's memory.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

func bytesAt(p uintptr, n int32) []byte { return unsafe.Slice(at[byte](p), n) }

var register = sync.OnceValue(func() int32 {
	tls := libc.NewTLS()
	name, err := libc.CString(vfsName)
	if err != nil {
		return sqlite3.SQLITE_NOMEM
	}
	calls = methods{
		version: 2, close: address(xClose), read: address(xRead), write: address(xWrite), truncate: address(xTruncate), sync: address(xSync), size: address(xSize),
		lock: address(xLock), unlock: address(xUnlock), reserved: address(xReserved), control: address(xControl), sectorSize: address(xSectorSize),
		characteristics: address(xCharacteristics), shmMap: address(xShmMap), shmLock: address(xShmLock), shmBarrier: address(xShmBarrier), shmUnmap: address(xShmUnmap),
	}
	registration = vfs{
		version: 2, fileBytes: int32(unsafe.Sizeof(header{})), pathBytes: 4096, name: name,
		open: address(xOpen), remove: address(xDelete), access: address(xAccess), fullPath: address(xFullPath),
		dlOpen: address(xDlOpen), dlError: address(xDlError), dlSym: address(xDlSym), dlClose: address(xDlClose), randomness: address(xRandomness),
		sleep: address(xSleep), now: address(xNow), lastError: address(xLastError), nowInteger: address(xNowInteger),
	}
	return sqlite3.Xsqlite3_vfs_register(tls, uintptr(unsafe.Pointer(&registration)), 0)
})

// handle is a file that SQLite has open.
type handle struct {
	process *process
	file    *inode
	name    string
	made    bool // its name is not durable before its first sync
	level   int32
	mapped  *shared
	has     [sqlite3.SQLITE_SHM_NLOCK]int32 // of the locks of mapped: 0, shared 1, exclusive -1
	temp    bool                            // it is nobody's but this connection's
	reads   bool                            // it cannot be written, nor locked for that, as with open files of the system
}

var (
	handles    sync.Map // uintptr -> *handle
	lastHandle atomic.Uintptr
)

func handleOf(file uintptr) *handle {
	h, _ := handles.Load(at[header](file).handle)
	return h.(*handle)
}

// shared is the index of a log, as the connections of one process share it, and the locks of a file.
type shared struct {
	regions []uintptr
	locks   [sqlite3.SQLITE_SHM_NLOCK]int32 // how many share it; -1: one has it alone

	readers                      int // of the database
	reserved, pending, exclusive *handle
}

// of are a file's locks and memory; the process's lock is held.
func (p *process) of(f *inode) *shared {
	s := p.shared[f.number]
	if s == nil {
		s = &shared{}
		p.shared[f.number] = s
	}
	return s
}

// free gives the memory of a process back, whose connections are closed.
func (p *process) free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	tls := libc.NewTLS()
	defer tls.Close()
	for _, s := range p.shared {
		for _, r := range s.regions {
			libc.Xfree(tls, r)
		}
	}
	clear(p.shared)
}

func xOpen(_ *libc.TLS, _, name, file uintptr, flags int32, out uintptr) int32 {
	at[header](file).methods = 0
	h := &handle{}
	switch {
	case name == 0:
		h.temp, h.file = true, &inode{}
	default:
		if h.process, h.name = find(name); h.process == nil {
			return sqlite3.SQLITE_CANTOPEN
		}
		h.reads = flags&sqlite3.SQLITE_OPEN_READONLY != 0
		if rc := h.open(flags); rc != sqlite3.SQLITE_OK {
			return rc
		}
	}
	number := lastHandle.Add(1)
	handles.Store(number, h)
	*at[header](file) = header{uintptr(unsafe.Pointer(&calls)), number}
	if out != 0 {
		*at[int32](out) = flags
	}
	return sqlite3.SQLITE_OK
}

func (h *handle) open(flags int32) int32 {
	d := h.process.disk
	if err := h.process.look(); err != nil {
		return sqlite3.SQLITE_CANTOPEN
	}
	h.file = d.names[h.name]
	d.mu.Unlock()
	if h.file != nil {
		return sqlite3.SQLITE_OK
	}
	if flags&sqlite3.SQLITE_OPEN_CREATE == 0 {
		return sqlite3.SQLITE_CANTOPEN
	}
	if err := h.process.change(); err != nil {
		return sqlite3.SQLITE_CANTOPEN
	}
	defer d.mu.Unlock()
	h.file, h.made = d.create(h.name), true
	return sqlite3.SQLITE_OK
}

func xClose(_ *libc.TLS, file uintptr) int32 {
	h := handleOf(file)
	if !h.temp {
		h.unlock(sqlite3.SQLITE_LOCK_NONE)
	}
	handles.Delete(at[header](file).handle)
	return sqlite3.SQLITE_OK
}

func xRead(_ *libc.TLS, file, buffer uintptr, n int32, from int64) int32 {
	h, p := handleOf(file), bytesAt(buffer, n)
	if h.temp {
		return short(p, copy(p, h.file.cache[min(int(from), len(h.file.cache)):]))
	}
	got, err := (&opened{h.process, h.file, h.name}).ReadAt(p, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return sqlite3.SQLITE_IOERR_READ
	}
	return short(p, got)
}

func short(p []byte, got int) int32 {
	if got == len(p) {
		return sqlite3.SQLITE_OK
	}
	clear(p[got:])
	return sqlite3.SQLITE_IOERR_SHORT_READ
}

func xWrite(_ *libc.TLS, file, buffer uintptr, n int32, to int64) int32 {
	h, p := handleOf(file), bytesAt(buffer, n)
	if h.temp {
		h.file.write(p, int(to))
		return sqlite3.SQLITE_OK
	}
	if h.reads {
		return sqlite3.SQLITE_IOERR_WRITE
	}
	if err := h.process.change(); err != nil {
		return sqlite3.SQLITE_IOERR_WRITE
	}
	defer h.process.disk.mu.Unlock()
	switch err := h.process.disk.write(h.file, p, int(to)); {
	case errors.Is(err, syscall.ENOSPC):
		return sqlite3.SQLITE_FULL
	case err != nil:
		return sqlite3.SQLITE_IOERR_WRITE
	}
	return sqlite3.SQLITE_OK
}

func xTruncate(_ *libc.TLS, file uintptr, size int64) int32 {
	h := handleOf(file)
	if h.temp {
		h.file.truncate(int(size))
		return sqlite3.SQLITE_OK
	}
	if h.reads {
		return sqlite3.SQLITE_IOERR_TRUNCATE
	}
	if err := h.process.change(); err != nil {
		return sqlite3.SQLITE_IOERR_TRUNCATE
	}
	defer h.process.disk.mu.Unlock()
	h.file.truncate(int(size))
	return sqlite3.SQLITE_OK
}

func xSync(_ *libc.TLS, file uintptr, _ int32) int32 {
	h := handleOf(file)
	if h.temp {
		return sqlite3.SQLITE_OK
	}
	if err := h.process.syncFile(h.file, h.made); err != nil {
		return sqlite3.SQLITE_IOERR_FSYNC
	}
	h.made = false
	return sqlite3.SQLITE_OK
}

func xSize(_ *libc.TLS, file, size uintptr) int32 {
	h := handleOf(file)
	if h.temp {
		*at[int64](size) = int64(len(h.file.cache))
		return sqlite3.SQLITE_OK
	}
	if err := h.process.look(); err != nil {
		return sqlite3.SQLITE_IOERR_FSTAT
	}
	defer h.process.disk.mu.Unlock()
	*at[int64](size) = int64(len(h.file.cache))
	return sqlite3.SQLITE_OK
}

func xLock(_ *libc.TLS, file uintptr, level int32) int32 {
	h := handleOf(file)
	if h.temp || level <= h.level {
		return sqlite3.SQLITE_OK
	}
	if h.reads && level > sqlite3.SQLITE_LOCK_SHARED {
		return sqlite3.SQLITE_IOERR_LOCK
	}
	h.process.mu.Lock()
	defer h.process.mu.Unlock()
	s := h.process.of(h.file)
	other := func(who *handle) bool { return who != nil && who != h }
	switch level {
	case sqlite3.SQLITE_LOCK_SHARED:
		if other(s.pending) || other(s.exclusive) {
			return sqlite3.SQLITE_BUSY
		}
		s.readers++
	case sqlite3.SQLITE_LOCK_RESERVED:
		if other(s.reserved) || other(s.pending) || other(s.exclusive) {
			return sqlite3.SQLITE_BUSY
		}
		s.reserved = h
	default:
		if other(s.reserved) || other(s.pending) || other(s.exclusive) {
			return sqlite3.SQLITE_BUSY
		}
		s.pending = h
		if s.readers > 1 {
			h.level = sqlite3.SQLITE_LOCK_PENDING
			return sqlite3.SQLITE_BUSY
		}
		s.exclusive = h
	}
	h.level = level
	return sqlite3.SQLITE_OK
}

func xUnlock(_ *libc.TLS, file uintptr, level int32) int32 {
	if h := handleOf(file); !h.temp {
		h.unlock(level)
	}
	return sqlite3.SQLITE_OK
}

func (h *handle) unlock(level int32) {
	h.process.mu.Lock()
	defer h.process.mu.Unlock()
	if level >= h.level {
		return
	}
	s := h.process.of(h.file)
	for _, held := range []**handle{&s.reserved, &s.pending, &s.exclusive} {
		if *held == h {
			*held = nil
		}
	}
	if level == sqlite3.SQLITE_LOCK_NONE {
		s.readers--
	}
	h.level = level
}

func xReserved(_ *libc.TLS, file, out uintptr) int32 {
	h := handleOf(file)
	*at[int32](out) = 0
	if h.temp {
		return sqlite3.SQLITE_OK
	}
	h.process.mu.Lock()
	defer h.process.mu.Unlock()
	if h.process.of(h.file).reserved != nil {
		*at[int32](out) = 1
	}
	return sqlite3.SQLITE_OK
}

func xControl(_ *libc.TLS, _ uintptr, _ int32, _ uintptr) int32 { return sqlite3.SQLITE_NOTFOUND }

// xSectorSize is what SQLite takes for any disk of Linux; what is torn is smaller.
func xSectorSize(*libc.TLS, uintptr) int32 { return 4096 }

// xCharacteristics promises what SQLite believes of any disk: a write leaves the bytes beside it as they are.
func xCharacteristics(*libc.TLS, uintptr) int32 { return sqlite3.SQLITE_IOCAP_POWERSAFE_OVERWRITE }

func xShmMap(tls *libc.TLS, file uintptr, region, size, extend int32, out uintptr) int32 {
	h := handleOf(file)
	*at[uintptr](out) = 0
	d := h.process.disk
	if h.mapped == nil {
		d.mu.Lock() // it is memory: no change of the disk, and how many connections there are is nobody's plan
		f := d.names[h.name+"-shm"]
		if f == nil {
			f = d.create(h.name + "-shm")
		}
		d.mu.Unlock()
		h.process.mu.Lock()
		h.mapped = h.process.of(f)
		h.process.mu.Unlock()
	}
	h.process.mu.Lock()
	defer h.process.mu.Unlock()
	for int(region) >= len(h.mapped.regions) {
		if extend == 0 {
			return sqlite3.SQLITE_OK
		}
		p := libc.Xcalloc(tls, 1, libc.Tsize_t(size))
		if p == 0 {
			return sqlite3.SQLITE_NOMEM
		}
		h.mapped.regions = append(h.mapped.regions, p)
	}
	*at[uintptr](out) = h.mapped.regions[region]
	return sqlite3.SQLITE_OK
}

func xShmLock(_ *libc.TLS, file uintptr, from, n, flags int32) int32 {
	h := handleOf(file)
	h.process.mu.Lock()
	defer h.process.mu.Unlock()
	locks, has := h.mapped.locks[from:from+n], h.has[from:from+n]
	for i := range locks {
		switch {
		case flags&sqlite3.SQLITE_SHM_UNLOCK != 0:
		case flags&sqlite3.SQLITE_SHM_SHARED != 0 && has[i] == 0 && locks[i] < 0, flags&sqlite3.SQLITE_SHM_EXCLUSIVE != 0 && has[i] == 0 && locks[i] != 0, has[i] > 0 && flags&sqlite3.SQLITE_SHM_EXCLUSIVE != 0 && locks[i] != 1:
			return sqlite3.SQLITE_BUSY
		}
	}
	for i := range locks {
		switch {
		case flags&sqlite3.SQLITE_SHM_UNLOCK != 0 && has[i] > 0:
			locks[i], has[i] = locks[i]-1, 0
		case flags&sqlite3.SQLITE_SHM_UNLOCK != 0 && has[i] < 0:
			locks[i], has[i] = 0, 0
		case flags&sqlite3.SQLITE_SHM_UNLOCK != 0:
		case flags&sqlite3.SQLITE_SHM_SHARED != 0 && has[i] == 0:
			locks[i], has[i] = locks[i]+1, 1
		case flags&sqlite3.SQLITE_SHM_EXCLUSIVE != 0:
			locks[i], has[i] = -1, -1
		}
	}
	return sqlite3.SQLITE_OK
}

func xShmBarrier(_ *libc.TLS, file uintptr) {
	h := handleOf(file)
	h.process.mu.Lock()
	h.process.mu.Unlock() //nolint:staticcheck // what was written before is seen after
}

func xShmUnmap(_ *libc.TLS, file uintptr, remove int32) int32 {
	h := handleOf(file)
	if h.mapped == nil {
		return sqlite3.SQLITE_OK
	}
	h.process.mu.Lock()
	for i, held := range h.has {
		switch {
		case held > 0:
			h.mapped.locks[i]--
		case held < 0:
			h.mapped.locks[i] = 0
		}
	}
	h.mapped, h.has = nil, [len(h.has)]int32{}
	h.process.mu.Unlock()
	if remove != 0 {
		h.process.Remove(h.name + "-shm") // as unlink there: what it says is nobody's to hear
	}
	return sqlite3.SQLITE_OK
}

func xDelete(_ *libc.TLS, _, name uintptr, directory int32) int32 {
	process, base := find(name)
	if process == nil {
		return sqlite3.SQLITE_IOERR_DELETE
	}
	if err := process.change(); err != nil {
		return sqlite3.SQLITE_IOERR_DELETE
	}
	defer process.disk.mu.Unlock()
	if process.disk.names[base] == nil {
		return sqlite3.SQLITE_IOERR_DELETE_NOENT
	}
	delete(process.disk.names, base)
	if directory != 0 {
		process.disk.syncNames()
	}
	return sqlite3.SQLITE_OK
}

func xAccess(_ *libc.TLS, _, name uintptr, _ int32, out uintptr) int32 {
	process, base := find(name)
	*at[int32](out) = 0
	if process == nil {
		return sqlite3.SQLITE_OK
	}
	if err := process.look(); err != nil {
		return sqlite3.SQLITE_IOERR_ACCESS
	}
	defer process.disk.mu.Unlock()
	if f := process.disk.names[base]; f != nil && len(f.cache) > 0 { // as SQLite's own: an empty log is none
		*at[int32](out) = 1
	}
	return sqlite3.SQLITE_OK
}

func xFullPath(tls *libc.TLS, _, name uintptr, n int32, out uintptr) int32 {
	libc.Xstrncpy(tls, out, name, libc.Tsize_t(n))
	return sqlite3.SQLITE_OK
}

func xDlOpen(*libc.TLS, uintptr, uintptr) uintptr         { return 0 }
func xDlError(*libc.TLS, uintptr, int32, uintptr)         {}
func xDlSym(*libc.TLS, uintptr, uintptr, uintptr) uintptr { return 0 }
func xDlClose(*libc.TLS, uintptr, uintptr)                {}
func xLastError(*libc.TLS, uintptr, int32, uintptr) int32 { return 0 }
func xRandomness(_ *libc.TLS, _ uintptr, n int32, out uintptr) int32 {
	clear(bytesAt(out, n))
	return n
}

// xSleep waits for another connection's lock; n are microseconds.
func xSleep(_ *libc.TLS, _ uintptr, n int32) int32 {
	time.Sleep(time.Duration(n) * time.Microsecond)
	return n
}

const julian1970 = 2440587.5 // days, of the beginning of 1970

func xNow(_ *libc.TLS, _, out uintptr) int32 {
	*at[float64](out) = julian1970 + float64(time.Now().UnixMilli())/86_400_000
	return sqlite3.SQLITE_OK
}

func xNowInteger(_ *libc.TLS, _, out uintptr) int32 {
	*at[int64](out) = int64(julian1970*86_400_000) + time.Now().UnixMilli()
	return sqlite3.SQLITE_OK
}
