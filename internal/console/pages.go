package console

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/objectferry/objectferry/internal/console/plot"
	"github.com/objectferry/objectferry/internal/queue"
)

//go:embed web
var web embed.FS

// pages renders the templates.
type pages struct{ templates *template.Template }

// newPages parses the templates. traceURL has {trace_id} where the id goes.
func newPages(traceURL string) (*pages, error) {
	if traceURL != "" {
		u, err := url.Parse(traceURL)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || !strings.Contains(traceURL, "{trace_id}") {
			return nil, fmt.Errorf("the URL of a trace, %q, must be http(s)://… with {trace_id} in it", traceURL)
		}
	}
	t, err := template.New("").Funcs(template.FuncMap{
		"visible": visible, "place": place, "count": count, "number": number, "span": span, "ago": ago, "clock": clock,
		"queueName": queue.Name, "hour": hour,
		"round":   func(f float64) string { return number(int(f)) },
		"round64": func(n int64) string { return number(int(n)) },
		"percent": percent,
		"trace":   func(id string) string { return traceLink(traceURL, id) },
	}).ParseFS(web, "web/templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("parse the console's pages: %w", err)
	}
	return &pages{t}, nil
}

// traceLink is "" where no link can be made.
func traceLink(pattern, id string) string {
	if pattern == "" || id == "" {
		return ""
	}
	return strings.ReplaceAll(pattern, "{trace_id}", url.PathEscape(id))
}

// render writes a page whole or not at all.
func (p *pages) render(w http.ResponseWriter, status int, name string, view any) {
	var page bytes.Buffer
	if err := p.templates.ExecuteTemplate(&page, name, view); err != nil {
		http.Error(w, "the page cannot be rendered: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = page.WriteTo(w) // a reader that went away is nobody's failure
}

// looks are the ways in which the plot is asked for.
func looks() map[string]plot.Look {
	return map[string]plot.Look{"light": {}, "dark": {Dark: true}, "light-narrow": {Narrow: true}, "dark-narrow": {Dark: true, Narrow: true}}
}

// plot writes the share from S3. The charts module writes styles into the
// picture, which the policy of the pages would not let it have.
func (p *pages) plot(w http.ResponseWriter, s *snapshot, look string) {
	l, ok := looks()[look]
	if !ok {
		http.Error(w, "no such look", http.StatusNotFound)
		return
	}
	svg, err := plot.Share(s.fleet.Share.Items, l)
	if err != nil || svg == nil {
		http.Error(w, "there is nothing to plot", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	h.Set("Content-Type", "image/svg+xml")
	h.Set("Cache-Control", "private, max-age=300") // its address changes with the numbers
	_, _ = w.Write(svg)
}

// static serves style sheet, script and icons.
func static() http.Handler {
	files := http.FileServerFS(web)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/") {
			http.NotFound(w, r)
			return
		}
		r.URL.Path = "/web" + r.URL.Path
		w.Header().Set("Cache-Control", "no-cache")
		files.ServeHTTP(w, r)
	})
}
