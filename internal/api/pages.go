package api

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/holdoutd/holdoutd"
	"github.com/holdoutd/holdoutd/internal/site"
)

//go:embed pages/interface.html
var interfacePage template.HTML

//go:embed pages/interface.js
var interfaceScript []byte

//go:embed pages/style.css
var style []byte

//go:embed pages/icon.svg
var icon []byte

//go:embed pages/theme.js
var themeScript []byte

//go:embed pages/missing.html
var missingText template.HTML

//go:embed pages/problems.html
var problemsPage string

// pagePolicy lets a page load what this server serves, and nothing else: the pages work offline.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// figurePolicy is that of a figure that is opened by itself: its shapes have styles of their own, and it loads nothing.
const figurePolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const htmlType = "text/html; charset=utf-8"

func (a *API) registerPages() {
	a.router.GET("/favicon.ico", func(c *gin.Context) { sendPage(c, figurePolicy, "image/svg+xml", icon) }) // where browsers look; the type is what counts
	a.page("/docs/interface.js", "text/javascript; charset=utf-8", interfaceScript)
	a.page("/docs/style.css", "text/css; charset=utf-8", style)
	a.page("/docs/theme.js", "text/javascript; charset=utf-8", themeScript)
	for _, class := range allClasses() { // a problem's type can be followed to what it means
		a.router.GET("/problems/"+class.code, func(c *gin.Context) {
			c.Redirect(http.StatusFound, "/docs/problems#"+class.code)
		})
	}
	a.registerDocumentation()
}

// guides are the pages of the contents that are no files.
var guides = []site.Guide{
	{Group: "Run a server", Link: site.Link{URL: "/docs/interface", Title: "Every path, parameter and shape", Says: "The OpenAPI document of this server, as a page."}, Body: interfacePage, Script: "/docs/interface.js"},
	{Group: "Run a server", Link: site.Link{URL: "/openapi.json", Title: "The same as a file", Says: "An OpenAPI 3.1 document, for programs."}},
	{Group: "Run a server", Link: site.Link{URL: "/docs/problems", Title: "Problems", Says: "What error replies mean, and what to do."}, Body: renderProblems()},
	{Group: "Run a server", Link: site.Link{URL: "/readyz", Title: "/readyz", Says: "Whether answers can be given; /healthz says whether the process lives, /version what runs, /metrics counts requests."}},
}

// documentation is made when it is first asked for.
var documentation = sync.OnceValues(func() (map[string]site.Page, error) { return site.Render(holdoutd.Texts, guides) })

// missingPage is what a browser gets at an address that is none.
var missingPage = sync.OnceValue(func() []byte {
	page, err := site.Framed("There is no such page", missingText)
	if err != nil {
		panic("api: " + err.Error())
	}
	return page.Body
})

func (a *API) registerDocumentation() {
	urls, err := site.URLs(holdoutd.Texts, guides)
	if err != nil {
		panic("api: " + err.Error())
	}
	for _, url := range urls {
		a.router.GET(url, func(c *gin.Context) {
			pages, err := documentation()
			if err != nil {
				problemOf(err).reply(c)
				return
			}
			policy := pagePolicy
			if strings.HasPrefix(pages[url].Media, "image/") {
				policy = figurePolicy
			}
			sendPage(c, policy, pages[url].Media, pages[url].Body)
		})
	}
}

func (a *API) page(path, media string, body []byte) {
	a.router.GET(path, func(c *gin.Context) { sendPage(c, pagePolicy, media, body) })
}

func sendPage(c *gin.Context, policy, media string, body []byte) {
	sendPageAs(c, http.StatusOK, policy, media, body)
}

func sendPageAs(c *gin.Context, status int, policy, media string, body []byte) {
	c.Header("Content-Security-Policy", policy)
	c.Header("Cache-Control", "no-cache")
	c.Data(status, media, body)
}

// wantsPage reports whether a browser asks for a page, and not a program for data.
func wantsPage(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && !strings.HasPrefix(r.URL.Path, "/v1/") && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// renderProblems makes the page of all problems from the table that the replies are made from.
func renderProblems() template.HTML {
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
	return template.HTML(b.String())
}
