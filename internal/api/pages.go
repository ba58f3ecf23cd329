package api

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"

	"github.com/gin-gonic/gin"
)

//go:embed pages/docs.html
var docsPage []byte

//go:embed pages/docs.js
var docsScript []byte

//go:embed pages/style.css
var style []byte

//go:embed pages/index.html
var indexPage []byte

//go:embed pages/problems.html
var problemsPage string

// pagePolicy lets a page load what this server serves, and nothing else: the pages work offline.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (a *API) registerPages() {
	const html = "text/html; charset=utf-8"
	a.page("/", html, indexPage)
	a.page("/docs", html, docsPage)
	a.page("/docs/docs.js", "text/javascript; charset=utf-8", docsScript)
	a.page("/docs/style.css", "text/css; charset=utf-8", style)
	a.page("/docs/problems", html, renderProblems())
	for _, class := range allClasses() { // a problem's type can be followed to what it means
		a.router.GET("/problems/"+class.code, func(c *gin.Context) {
			c.Redirect(http.StatusFound, "/docs/problems#"+class.code)
		})
	}
}

func (a *API) page(path, media string, body []byte) {
	a.router.GET(path, func(c *gin.Context) {
		c.Header("Content-Security-Policy", pagePolicy)
		c.Header("Cache-Control", "no-cache")
		c.Data(http.StatusOK, media, body)
	})
}

// renderProblems makes the page of all problems from the table that the replies are made from.
func renderProblems() []byte {
	type row struct {
		Code, Title, Advice string
		Status              int
	}
	var rows []row
	for _, c := range allClasses() {
		rows = append(rows, row{c.code, c.title, c.advice, c.status})
	}
	var b bytes.Buffer
	if err := template.Must(template.New("problems").Parse(problemsPage)).Execute(&b, rows); err != nil {
		panic("api: " + err.Error())
	}
	return b.Bytes()
}
