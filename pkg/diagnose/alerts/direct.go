package alerts

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/secret"
)

// inside is the HTTP client for services in the cluster. It ignores the proxies of the environment and doesn't follow redirects, because a proxy or
// another server would receive the password.
var inside = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

type direct struct {
	at       *url.URL
	password func() (secret.String, error)
}

func (d *direct) send(ctx context.Context, method, path string, query url.Values, body []byte) (int, []byte, error) {
	at := d.at.JoinPath(path)
	at.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if len(body) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	if d.password != nil {
		password, err := d.password()
		if err != nil {
			return 0, nil, err
		}
		r.SetBasicAuth(access.User, password.Reveal())
	}
	resp, err := inside.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxBytes))
	return resp.StatusCode, answer, err
}
