package strictjson

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	_ "github.com/holdoutd/holdoutd/internal/stattest" // the seed of properties
)

func TestLoneSurrogate(t *testing.T) {
	for text, want := range map[string]int{
		`"plain"`: -1, `"\ud83d\ude00"`: -1, `"\uD83D\uDE00"`: -1, `"\\ud800"`: -1, `"\\\ud800"`: 3, `"\ud800"`: 1, `"\udc00"`: 1, `"\ud800\ud800"`: 1,
		`"\ud800x"`: 1, `"\ud800\n"`: 1, `"a\ud83d\ude00\udead"`: 14, `{"\udfff":1}`: 2, `"\u0041\ufffd"`: -1, `"\"\ud800"`: 3,
	} {
		if got := LoneSurrogate([]byte(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

// TestLoneSurrogateIsWhatJSONReplaces: a text of escapes is refused exactly where encoding/json puts U+FFFD in its place.
func TestLoneSurrogateIsWhatJSONReplaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.SampledFrom([]string{`\ud800`, `\udbff`, `\udc00`, `\uDFFF`, `\\`, `\"`, `\n`, `u`, `d800`, `\u0041`, `ü`}), 0, 8).Draw(t, "pieces")
		text := `"`
		for _, p := range pieces {
			text += p
		}
		text += `"`
		var read string
		if err := json.Unmarshal([]byte(text), &read); err != nil {
			t.Fatal(text, err)
		}
		replaced := false
		for _, r := range read {
			replaced = replaced || r == utf8.RuneError
		}
		if lone := LoneSurrogate([]byte(text)) >= 0; lone != replaced {
			t.Fatalf("%s: refused %v, replaced %v", text, lone, replaced)
		}
	})
}
