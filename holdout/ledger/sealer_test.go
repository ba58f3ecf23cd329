package ledger

import (
	"bytes"
	"errors"
	"testing"
)

// TestSeals: two seals of one value share neither salt nor nonce nor text. It would catch a salt or a nonce that is not
// drawn: AES-GCM with one key and one nonce gives away the difference of two secrets and the key of the tags.
func TestSeals(t *testing.T) {
	s := Sealer{Key: [32]byte{1, 2, 3}}
	value := bytes.Repeat([]byte{7}, 64)
	const salt, nonce, text = 1, 1 + saltSize, 1 + saltSize + 12
	seen := map[string]bool{}
	for range 100 {
		sealed, err := s.Seal(value, "a test")
		if err != nil {
			t.Fatal(err)
		}
		for name, part := range map[string][]byte{"salt": sealed[salt:nonce], "nonce": sealed[nonce:text], "text": sealed[text : text+16], "tag": sealed[len(sealed)-16:]} {
			if key := name + string(part); seen[key] {
				t.Fatalf("two seals have one %s: %x", name, part)
			} else {
				seen[key] = true
			}
		}
		if opened, err := s.Open(sealed, "a test"); err != nil || !bytes.Equal(opened, value) {
			t.Fatalf("opened %x, %v", opened, err)
		}
		if _, err := s.Open(sealed, "another"); !errors.Is(err, ErrSealed) {
			t.Fatalf("opened for another purpose: %v", err)
		}
	}
}
