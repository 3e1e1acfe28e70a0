package server

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/job/api"
)

func (s *Server) serveUsage(w http.ResponseWriter, r *http.Request) error {
	q, err := usageQuery(r.URL.Query())
	if err != nil {
		return err
	}
	out, err := s.o.Store.Usage(r.Context(), q)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, out)
	return nil
}

func usageQuery(v url.Values) (api.UsageQuery, error) {
	q := api.UsageQuery{User: v.Get("user"), VirtualCluster: v.Get("vc"), Type: v.Get("type")}
	if err := onlyKnown(v, "user", "vc", "type", "since", "until", "by"); err != nil {
		return q, err
	}
	for _, by := range v["by"] { // several, or several with commas
		for one := range strings.SplitSeq(by, ",") {
			if !slices.Contains(q.By, one) {
				q.By = append(q.By, one)
			}
		}
	}
	var err error
	if q.Since, err = instant(v, "since"); err != nil {
		return q, err
	}
	q.Until, err = instant(v, "until")
	return q, err
}
