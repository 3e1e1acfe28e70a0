// Package alerts reads the firing alerts from Alertmanager.
// In: the address of Alertmanager, and its password. Out: alerts, from Alertmanager's API v2.
package alerts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/secret"
)

// Alert is a firing alert.
type Alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
	Generator   string            `json:"generatorURL"`
	Fingerprint string            `json:"fingerprint"`
	Receivers   []struct {
		Name string `json:"name"`
	} `json:"receivers"`
	Status struct {
		State       string   `json:"state"`
		SilencedBy  []string `json:"silencedBy"`
		InhibitedBy []string `json:"inhibitedBy"`
	} `json:"status"`
}

// Labels of alerts about a job.
const (
	LabelUser = "user"
	LabelJob  = "job_name"
	LabelVC   = "vc"
)

// Heartbeat is the alert that always fires: if it is missing, alerts don't arrive. Users don't need to see it.
const Heartbeat = "Heartbeat"

// ErrAway is the error if Alertmanager doesn't answer, ErrNone the error of a client without an Alertmanager. It isn't known then which alerts fire.
var (
	ErrAway = errors.New("Alertmanager doesn't answer") //nolint:staticcheck // it is a name
	ErrNone = errors.New("there is no Alertmanager to ask")
)

const (
	// askTime limits a request, maxBytes a response, and keepFor is how long a response is reused for other callers.
	askTime  = 10 * time.Second
	maxBytes = 32 << 20
	keepFor  = 5 * time.Second
)

// Options specify where Alertmanager is.
type Options struct {
	// URL is empty if there is no Alertmanager.
	URL string
	// Password reads its password. It is nil if there is no password.
	Password func() (secret.String, error)
	Now      func() time.Time // nil is time.Now
	// Failed is called with the reason if it doesn't answer.
	Failed func(error)
}

// Client is a client of one Alertmanager.
type Client struct {
	o  Options
	at *url.URL

	mu    sync.Mutex
	have  []Alert
	err   error
	asked time.Time
}

// inside sends requests without the proxies of the environment, and doesn't follow redirects with the password.
var inside = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// New makes a client. It doesn't send a request yet.
func New(o Options) (*Client, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Client{o: o}
	if o.URL == "" {
		return c, nil
	}
	at, err := url.Parse(o.URL)
	if err != nil {
		return nil, errors.New("the address of Alertmanager is malformed")
	}
	c.at = at.JoinPath("api", "v2", "alerts")
	c.at.RawQuery = url.Values{"active": {"true"}, "silenced": {"false"}, "inhibited": {"false"}, "unprocessed": {"false"}}.Encode()
	return c, nil
}

// Firing are the alerts that fire and aren't silenced, as of a few seconds ago at most. The slice is shared: it isn't changed.
func (c *Client) Firing(ctx context.Context) ([]Alert, error) {
	if c.at == nil {
		return nil, ErrNone
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked.IsZero() || c.o.Now().Sub(c.asked) >= keepFor {
		c.have, c.err = c.ask(context.WithoutCancel(ctx)) // other callers wait for it as well
		c.asked = c.o.Now()
		if c.err != nil && c.o.Failed != nil {
			c.o.Failed(c.err)
		}
	}
	if c.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAway, c.err)
	}
	return c.have, nil
}

func (c *Client) ask(ctx context.Context) ([]Alert, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.at.String(), nil)
	if err != nil {
		return nil, err
	}
	if c.o.Password != nil {
		password, err := c.o.Password()
		if err != nil {
			return nil, err
		}
		r.SetBasicAuth(access.User, password.Reveal())
	}
	resp, err := inside.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(resp.Status)
	}
	out := []Alert{}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxBytes)).Decode(&out); err != nil {
		return nil, fmt.Errorf("read its answer: %w", err)
	}
	return slices.DeleteFunc(out, func(a Alert) bool { return a.Labels["alertname"] == Heartbeat }), nil
}
