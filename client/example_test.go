package client_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/holdoutd/holdoutd/client"
)

// Uploads a file and asks about it until the budget is spent.
func Example() {
	ctx := context.Background()
	c, err := client.New("http://127.0.0.1:8080", os.Getenv("HOLDOUTD_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	table, err := os.Open("flights.parquet")
	if err != nil {
		log.Fatal(err)
	}
	defer table.Close()
	card, err := c.CreateHoldout(ctx, table, client.Settings{Name: "flights", Holdout: 0.3, Questions: 1000})
	if id, known := client.ExistingHoldout(err); known {
		card, err = c.Holdout(ctx, id)
	}
	if err != nil {
		log.Fatal(err)
	}
	for minutes := 0; ; minutes += 5 {
		reply, err := c.Ask(ctx, card.ID, map[string]any{"type": "fraction", "of": fmt.Sprintf("delay > %d", minutes)})
		if client.IsBudgetExhausted(err) {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(minutes, *reply.Answer.Value, *reply.Answer.Interval.Low, *reply.Answer.Interval.High, reply.Budget.Questions.Left)
	}
}
