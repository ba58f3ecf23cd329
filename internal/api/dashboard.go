package api

import (
	"net/http"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/holdoutd/holdoutd/internal/dashboard"
)

// loadDashboard compresses the files once for all servers of a process.
var loadDashboard = sync.OnceValues(func() (map[string]dashboard.File, error) {
	page, files, err := dashboard.Load()
	if err != nil {
		return nil, err
	}
	for _, address := range dashboard.Pages {
		files[address] = page
	}
	return files, nil
})

// registerDashboard serves the web application: one page at all of its addresses, and the files that it loads. They need no key and have nothing
// of any holdout: what the page shows, its scripts ask for with the reader's session.
func (a *API) registerDashboard() {
	files, err := loadDashboard()
	if err != nil {
		panic("api: " + err.Error())
	}
	for address, file := range files {
		a.router.GET(address, func(c *gin.Context) { sendFile(c, file) })
	}
}

func sendFile(c *gin.Context, f dashboard.File) {
	c.Header("Content-Security-Policy", dashboard.Policy)
	c.Header("Cache-Control", "no-cache") // kept, and asked for by its tag
	body, tag := f.Body, f.Tag
	if f.Gzip != nil {
		c.Header("Vary", "Accept-Encoding")
		if acceptsGzip(c.Request) {
			c.Header("Content-Encoding", "gzip")
			body, tag = f.Gzip, f.ZippedTag()
		}
	}
	c.Header("ETag", tag)
	for known := range strings.SplitSeq(c.GetHeader("If-None-Match"), ",") {
		if strings.TrimPrefix(strings.TrimSpace(known), "W/") == tag {
			c.Writer.Header().Del("Content-Encoding")
			c.Status(http.StatusNotModified)
			return
		}
	}
	c.Data(http.StatusOK, f.Media, body)
}

// acceptsGzip reads Accept-Encoding as browsers write it: gzip is among the names, without a weight or with one above 0.
func acceptsGzip(r *http.Request) bool {
	for offer := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(strings.ToLower(offer), " ", ""), ";")
		if name == "gzip" {
			return strings.TrimRight(weight, "0.") != "q="
		}
	}
	return false
}
