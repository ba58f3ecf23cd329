package holdout_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/holdout"
)

// A service keeps holdouts in a directory. Uploads are decoded by a child process, for which a program starts itself with an
// argument that leads to ingest.ChildMain.
func Example() {
	dir, err := os.MkdirTemp("", "holdout-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	service, err := holdout.Open(ctx, holdout.Options{Dir: dir, AnyFileSystem: true, Decoder: []string{self, "decode-parquet"}}) // a temporary directory can be in memory
	if err != nil {
		log.Fatal(err)
	}
	defer service.Close()

	owner := holdout.Principal{KeyID: "key_owner", Scope: holdout.Admin}
	card, _, err := service.Create(ctx, owner, holdout.Settings{Name: "flights", Questions: 100},
		holdout.SingleUpload(strings.NewReader(data.Flights)), "")
	if err != nil {
		log.Fatal(err)
	}
	reply, err := service.Ask(ctx, owner, card.ID, []byte(`{"type":"fraction","of":"delay > 15"}`), "")
	if err != nil {
		log.Fatal(err)
	}
	var answer struct {
		Interval struct{ Low, High float64 }
	}
	if err := json.Unmarshal(reply.Body, &answer); err != nil {
		log.Fatal(err)
	}
	fmt.Println(card.Units.Training, card.Units.Holdout, card.Guarantee.Mechanism)
	fmt.Println(answer.Interval.Low < 0.2 && 0.2 < answer.Interval.High, reply.Budget.Questions.Left)
	// Output:
	// 70000 30000 guess_and_check
	// true 99
}
