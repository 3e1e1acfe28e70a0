package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/job/listing"
)

const (
	// forwarded is a header of requests that another replica forwarded. They aren't forwarded again.
	forwarded = "X-Pai-Forwarded"
	// forwardTime is how long connecting to the leading replica may take.
	forwardTime = 3 * time.Second
	// livePage is the default number of rows on a page, and maxLivePage is the maximum.
	livePage, maxLivePage = 100, 1000
)

// Jobs lists live jobs and archived jobs.
type Jobs interface {
	List(ctx context.Context, f listing.Filter) (*listing.Page, error)
	// Leads reports whether this replica leads. Leader returns the address of the leading replica, or "" if it is unknown.
	Leads() bool
	Leader() string
	// Events returns the events of a Framework that the archive doesn't have yet.
	Events(framework string) []api.Event
}

func (s *Server) serveLive(w http.ResponseWriter, r *http.Request) error {
	f, err := liveFilter(r.URL.Query())
	if err != nil {
		return err
	}
	if s.o.Jobs == nil {
		return fmt.Errorf("%w: this program doesn't know which jobs live", listing.ErrUnavailable)
	}
	if !s.o.Jobs.Leads() {
		return s.forward(w, r)
	}
	page, err := s.o.Jobs.List(r.Context(), f)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, page)
	return nil
}

// liveFilter parses the parameters of a list of live jobs. It needs no other requests, so it runs before them.
func liveFilter(v url.Values) (f listing.Filter, err error) {
	f = listing.Filter{User: v.Get("user"), VirtualCluster: v.Get("vc"), Keyword: v.Get("keyword"), InName: v.Get("name"), Cursor: v.Get("cursor"), Earlier: v.Get("earlier") == "true"}
	if err := onlyKnown(v, "live", "user", "vc", "state", "keyword", "name", "since", "earlier", "limit", "cursor"); err != nil {
		return f, err
	}
	if v.Get("live") != "true" {
		return f, fmt.Errorf("%w: live must be true, or absent", archive.ErrBadQuery)
	}
	if _, err := listing.ReadCursor(f.Cursor); err != nil {
		return f, fmt.Errorf("%w: %w", archive.ErrBadQuery, err)
	}
	for _, states := range v["state"] { // several, or several with commas
		phases, err := listing.ReadPhases(strings.Split(states, ","))
		if err != nil {
			return f, fmt.Errorf("%w: %w", archive.ErrBadQuery, err)
		}
		f.Phases = append(f.Phases, phases...)
	}
	if f.Since, err = instant(v, "since"); err != nil {
		return f, err
	}
	limit, err := number(v, "limit")
	if err != nil {
		return f, err
	}
	f.Limit = int(limit)
	if v.Get("limit") == "" {
		f.Limit = livePage
	}
	if f.Limit < 1 || f.Limit > maxLivePage {
		return f, fmt.Errorf("%w: limit %d; ask for 1 to %d jobs a page", archive.ErrBadQuery, f.Limit, maxLivePage)
	}
	return f, nil
}

// forward forwards a request to the leading replica. The forwarded request contains the client's token, because all replicas accept the same
// token.
func (s *Server) forward(w http.ResponseWriter, r *http.Request) error {
	leader := s.o.Jobs.Leader()
	if leader == "" || r.Header.Get(forwarded) != "" {
		return fmt.Errorf("%w: this replica isn't the leader, and doesn't know which one does", listing.ErrUnavailable)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "http", Host: leader})
			p.Out.Header.Set(forwarded, "1")
		},
		Transport: s.toLeader,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			writeError(w, fmt.Errorf("%w: this replica isn't the leader, and %s, which does, doesn't answer: %w", listing.ErrUnavailable, leader, err))
		},
	}
	proxy.ServeHTTP(w, r)
	return nil
}

// newTransport returns the transport for requests between replicas.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: forwardTime}
	return &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, ResponseHeaderTimeout: readTime}
}
