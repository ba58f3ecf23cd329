package backup

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"filippo.io/age"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// entry is a member of an archive that a test makes.
type entry struct {
	tar.Header
	body []byte
}

// entries are the members of a backup.
func entries(t testing.TB, x *sample) (all []entry) {
	t.Helper()
	clear, done, err := open(bytes.NewReader(x.backup), x.opens)
	must(t, err)
	defer done()
	r := tar.NewReader(clear)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		body, err := io.ReadAll(r)
		must(t, err)
		all = append(all, entry{*h, body})
	}
}

// archive is the tar of members.
func archive(t testing.TB, all []entry) []byte {
	t.Helper()
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	for _, e := range all {
		e.Size = int64(len(e.body))
		if e.Typeflag != tar.TypeReg {
			e.Size = 0
		}
		must(t, w.WriteHeader(&e.Header))
		if e.Typeflag == tar.TypeReg {
			_, err := w.Write(e.body)
			must(t, err)
		}
	}
	must(t, w.Close())
	return text.Bytes()
}

// sealed is an archive as a backup, for these recipients.
func sealed(t testing.TB, archive []byte, recipients ...age.Recipient) []byte {
	t.Helper()
	var out bytes.Buffer
	encrypted, err := age.Encrypt(&out, recipients...)
	must(t, err)
	packed, err := zstd.NewWriter(encrypted)
	must(t, err)
	_, err = packed.Write(archive)
	must(t, errors.Join(err, packed.Close(), encrypted.Close()))
	return out.Bytes()
}

// TestForgedArchive changes what is in a backup and encrypts it again, as everyone can who has the public key. It notices a path that leads out of the directory, a file that is none, one that the manifest does not
// have, a ledger of other holdouts, and a table that is not its holdout's.
func TestForgedArchive(t *testing.T) {
	x := newSample(t)
	recipients, opens := keys(t)
	at := func(all []entry, path string) int {
		for i := range all {
			if strings.HasSuffix(all[i].Name, path) {
				return i
			}
		}
		t.Fatalf("no %s", path)
		return 0
	}
	rename := func(from, to string) func([]entry) []entry {
		return func(all []entry) []entry { all[at(all, from)].Name = to; return all }
	}
	// relisted writes the manifest anew, so that it agrees with what is there.
	relisted := func(change func([]entry) []entry) func([]entry) []entry {
		return func(all []entry) []entry {
			all = change(all)
			last := at(all, manifestMember)
			var m Manifest
			must(t, json.Unmarshal(all[last].body, &m))
			m.Files = nil
			for i := range all {
				if i != last {
					sum := newSum()
					sum.Write(all[i].body)
					m.Files = append(m.Files, File{all[i].Name, int64(len(all[i].body)), strings.TrimPrefix(sum.text(), "sha256:")})
				}
			}
			body, err := json.Marshal(m)
			must(t, err)
			all[last].body = body
			return all
		}
	}
	flipIn := func(path string) func([]entry) []entry {
		return func(all []entry) []entry { all[at(all, path)].body[3] ^= 1; return all }
	}
	if left := relisted(func(all []entry) []entry { return all })(entries(t, x)); left != nil { // what changes nothing is taken
		_, err := Check(t.Context(), bytes.NewReader(sealed(t, archive(t, left), recipients...)), Options{Identities: opens})
		must(t, err)
	}
	for what, forge := range map[string]func([]entry) []entry{
		"a path out of it":        rename("training/columns", "holdouts/../../columns"),
		"an absolute path":        rename("training/columns", "/etc/columns"),
		"a hidden file":           rename("training/columns", "holdouts/"+x.ids[0]+"/.columns"),
		"the ledger as a file":    rename("training/columns", "ledger.db"),
		"a path that is too deep": rename("training/columns", "holdouts/a/b/c/d"),
		"a file twice":            rename("training/columns", "holdouts/"+x.ids[0]+"/holdout/columns"),
		"the same, listed":        relisted(rename("training/columns", "holdouts/"+x.ids[0]+"/training/other")),
		"a symbolic link": func(all []entry) []entry {
			e := &all[at(all, "training/columns")]
			e.Typeflag, e.Linkname = tar.TypeSymlink, "/etc/passwd"
			return all
		},
		"a directory": func(all []entry) []entry { all[at(all, "training/columns")].Typeflag = tar.TypeDir; return all },
		"a hole": func(all []entry) []entry {
			all[at(all, "training/columns")].PAXRecords, all[at(all, "training/columns")].Format = map[string]string{"comment": "x"}, tar.FormatPAX
			return all
		},
		"no header":   func(all []entry) []entry { return all[1:] },
		"no manifest": func(all []entry) []entry { return all[:len(all)-1] },
		"no ledger":   relisted(func(all []entry) []entry { i := at(all, ledgerMember); return append(all[:i:i], all[i+1:]...) }),
		"no key":      relisted(func(all []entry) []entry { i := at(all, serverKey); return append(all[:i:i], all[i+1:]...) }),
		"another order": func(all []entry) []entry {
			i, j := at(all, serverKey), at(all, ledgerMember)
			all[i], all[j] = all[j], all[i]
			return all
		},
		"a file less":      func(all []entry) []entry { i := at(all, "training/columns"); return append(all[:i:i], all[i+1:]...) },
		"a changed column": flipIn("holdout/columns"),
		"a changed ledger": func(all []entry) []entry {
			e := &all[at(all, ledgerMember)]
			e.body = bytes.Replace(e.body, []byte("key_ana"), []byte("key_eve"), 1)
			return all
		},
		"a changed ledger, listed": relisted(func(all []entry) []entry {
			e := &all[at(all, ledgerMember)]
			e.body = bytes.Replace(e.body, []byte(`"key_ana"`), []byte(`"key_eve"`), 1)
			return all
		}),
		"other holdouts": func(all []entry) []entry {
			e := &all[at(all, manifestMember)]
			e.body = bytes.Replace(e.body, []byte(x.ids[1]), []byte(x.ids[2]), 1)
			return all
		},
		"another holdout's tables": relisted(func(all []entry) []entry {
			i, j := at(all, x.ids[0]+"/holdout/manifest"), at(all, x.ids[1]+"/holdout/manifest")
			all[i].body, all[j].body = all[j].body, all[i].body
			return all
		}),
		"tables of nobody": relisted(func(all []entry) []entry {
			for i := range all {
				all[i].Name = strings.Replace(all[i].Name, x.ids[0], "ho_other", 1)
			}
			return all
		}),
		"a member of the manifest": func(all []entry) []entry {
			e := &all[at(all, manifestMember)]
			e.body = bytes.Replace(e.body, []byte(`"files"`), []byte(`"more":1,"files"`), 1)
			return all
		},
		"an endless key": relisted(func(all []entry) []entry { all[at(all, serverKey)].body = make([]byte, maxKeyFile+1); return all }),
		"another key": relisted(func(all []entry) []entry {
			e := &all[at(all, serverKey)]
			e.body = bytes.Repeat([]byte("ab"), 32)
			return all
		}),
	} {
		backup := sealed(t, archive(t, forge(entries(t, x))), recipients...)
		if what == "another key" { // the values that it does not open are not looked at by Check
			_, err := Restore(t.Context(), bytes.NewReader(backup), filepath.Join(t.TempDir(), "data"), Options{Identities: opens})
			if !errors.Is(err, ledger.ErrWrongKey) {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		refused(t, what, backup, Options{Identities: opens}, nil, "")
	}
	later := entries(t, x)
	later[0].body = bytes.Replace(later[0].body, []byte(Format), []byte(formatName+"2"), 1)
	refused(t, "a version to come", sealed(t, archive(t, later), recipients...), Options{Identities: opens}, ledger.ErrVersion, "newer")
}

// TestBombs: what unpacks to much more than it is takes no memory, and no more disk than there is.
func TestBombs(t *testing.T) {
	recipients, opens := keys(t)
	var out bytes.Buffer
	encrypted, err := age.Encrypt(&out, recipients...)
	must(t, err)
	packed, err := zstd.NewWriter(encrypted, zstd.WithWindowSize(maxWindow))
	must(t, err)
	w := tar.NewWriter(packed)
	must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: headerMember, Size: 1 << 30}))
	zeros := make([]byte, 1<<20)
	for range 64 {
		_, err := w.Write(zeros)
		must(t, err)
	}
	must(t, errors.Join(packed.Close(), encrypted.Close()))
	refused(t, "a header of a gigabyte", out.Bytes(), Options{Identities: opens}, ErrDamaged, "at most")

	header := func(bytes int64) []byte {
		text, err := json.Marshal(Header{Format: Format, Tables: true, Bytes: bytes})
		must(t, err)
		return archive(t, []entry{{tar.Header{Typeflag: tar.TypeReg, Name: headerMember}, text}})
	}
	_, err = Restore(t.Context(), bytes.NewReader(sealed(t, header(1<<60), recipients...)), filepath.Join(t.TempDir(), "data"), Options{Identities: opens})
	if err == nil || !strings.Contains(err.Error(), "the disk has room for") {
		t.Errorf("tables of 2^60 bytes: %v", err)
	}
	var wide bytes.Buffer
	encrypted, err = age.Encrypt(&wide, recipients...)
	must(t, err)
	packed, err = zstd.NewWriter(encrypted, zstd.WithWindowSize(8*maxWindow))
	must(t, err)
	_, err = packed.Write(make([]byte, 20*maxWindow))
	must(t, errors.Join(err, packed.Close(), encrypted.Close()))
	refused(t, "a window of 64 MiB", wide.Bytes(), Options{Identities: opens}, ErrDamaged, "")
}

// nowhere takes everything and keeps nothing.
type nowhere struct{ said []ledger.Report }

func (nowhere) begin(Header) error { return nil }

func (nowhere) file(path string, size int64, r io.Reader) error {
	if strings.Contains(path, "..") || filepath.IsAbs(path) || !filepath.IsLocal(path) {
		panic(path)
	}
	_, err := io.Copy(io.Discard, r)
	return err
}

func (n nowhere) ledger(r io.Reader) ([]ledger.Report, error) {
	_, err := io.Copy(io.Discard, r)
	return n.said, err
}

// FuzzArchive reads anything as the archive of a backup: it never panics, hands out no path that leads elsewhere, and what it takes has every file that its manifest lists.
func FuzzArchive(f *testing.F) {
	m := Manifest{Header: Header{Format: Format, Tables: true}, Holdouts: []Holdout{}}
	files := []entry{{tar.Header{Typeflag: tar.TypeReg, Name: headerMember}, nil}, {tar.Header{Typeflag: tar.TypeReg, Name: "holdouts/ho_1/training/manifest"}, []byte("x")},
		{tar.Header{Typeflag: tar.TypeReg, Name: ledgerMember}, []byte("{}")}}
	files[0].body, _ = json.Marshal(m.Header)
	for _, e := range files {
		sum := newSum()
		sum.Write(e.body)
		m.Files = append(m.Files, File{e.Name, int64(len(e.body)), strings.TrimPrefix(sum.text(), "sha256:")})
	}
	last, _ := json.Marshal(m)
	whole := archive(f, append(files, entry{tar.Header{Typeflag: tar.TypeReg, Name: manifestMember}, last}))
	if _, err := read(f.Context(), bytes.NewReader(whole), nowhere{}); err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-1024])
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := read(t.Context(), bytes.NewReader(text), nowhere{})
		if err == nil && (len(m.Files) < 2 || m.Format != Format) {
			t.Fatalf("%+v was read", m)
		}
	})
}

// TestKilledRestoreIsCleared: what a restore left that was killed is removed by the next one, and what a running one has stays.
func TestKilledRestoreIsCleared(t *testing.T) {
	x := newSample(t)
	parent := t.TempDir()
	left, running := filepath.Join(parent, ".data.restoring-1"), filepath.Join(parent, ".data.restoring-2")
	for _, dir := range []string{left, running} {
		must(t, os.Mkdir(dir, 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "ledger.db"), []byte("x"), 0o600))
	}
	unlock, err := lockDir(running)
	must(t, err)
	defer unlock()
	_, err = Restore(t.Context(), bytes.NewReader(x.backup), filepath.Join(parent, "data"), Options{Identities: x.opens})
	must(t, err)
	names, err := os.ReadDir(parent)
	must(t, err)
	if len(names) != 2 || names[0].Name() != ".data.restoring-2" || names[1].Name() != "data" {
		t.Errorf("there are %v", names)
	}
}
