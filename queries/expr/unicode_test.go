package expr

import (
	"strings"
	"testing"
)

// TestOtherAlphabets: names in other alphabets are columns too, and the error says how to write them.
func TestOtherAlphabets(t *testing.T) {
	for _, source := range []string{"Größe > 1", "π > 1", "x > 年齢"} {
		_, err := Parse(source)
		if err == nil || !strings.Contains(err.Error(), `col("NAME")`) {
			t.Errorf("%s: %v", source, err)
		}
	}
	if _, err := Parse(`col("Größe") > 1 && col("年齢") > 2`); err != nil {
		t.Error(err)
	}
}
