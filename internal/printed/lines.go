package printed

import (
	"strings"
	"unicode/utf8"
)

// InLines breaks the lines of a text that have more than width characters, between words. Rows of tables and blocks of code of Markdown stay as they are, and so does a word that is longer.
func InLines(text string, width int) string {
	var b strings.Builder
	code := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		bare, ended := strings.CutSuffix(line, "\n")
		if code || utf8.RuneCountInString(bare) <= width || strings.HasPrefix(line, "|") {
			b.WriteString(line)
			continue
		}
		length := 0
		for word := range strings.FieldsSeq(bare) {
			n := utf8.RuneCountInString(word)
			switch {
			case length == 0:
			case length+1+n > width:
				b.WriteByte('\n')
				length = 0
			default:
				b.WriteByte(' ')
				length++
			}
			b.WriteString(word)
			length += n
		}
		if ended {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
