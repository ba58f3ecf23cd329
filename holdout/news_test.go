package holdout

import "testing"

// TestNewsAreForgotten: who asks for the news of ids that are no holdout's leaves nothing behind, and who waits beside somebody that leaves is told still.
func TestNewsAreForgotten(t *testing.T) {
	s := new(Service)
	for range 2 {
		_, over := s.News("nobody")
		_, other := s.News("nobody")
		over()
		over() // as who leaves twice
		other()
	}
	if n := len(s.news.waiting); n != 0 {
		t.Fatalf("%d ids are kept for which nobody waits", n)
	}
	stays, over := s.News("holdout")
	_, leaves := s.News("holdout")
	leaves()
	s.news.tell("holdout")
	select {
	case <-stays:
	default:
		t.Fatal("who waits is not told")
	}
	_, late := s.News("holdout") // after the answer: of the next one
	over()
	if n := len(s.news.waiting); n != 1 {
		t.Fatalf("who has left takes the news of %d others away", 1-n)
	}
	late()
	if n := len(s.news.waiting); n != 0 {
		t.Fatalf("%d ids are kept for which nobody waits", n)
	}
}
