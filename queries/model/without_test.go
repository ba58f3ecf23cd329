package model_test

import (
	"testing"

	"github.com/holdoutd/holdoutd/queries/vector/vectortest"
)

func TestWithoutVectors(t *testing.T) { vectortest.Without(t) }
