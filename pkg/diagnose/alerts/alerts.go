// Package alerts reads and silences alerts.
// In: the address of Alertmanager, and its password. Out: alerts and silences, from Alertmanager's API v2.
package alerts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/secret"
)

// Alert is a firing alert in Alertmanager's format.
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

// Heartbeat is an alert that always fires. If it is missing, no alerts arrive. Clients hide this alert from users.
const Heartbeat = "Heartbeat"

// ErrAway means that Alertmanager doesn't respond. ErrNone means that the cluster has no Alertmanager. In both cases, the firing alerts are unknown.
var (
	ErrAway = errors.New("Alertmanager doesn't answer") //nolint:staticcheck // it is a name
	ErrNone = errors.New("there is no Alertmanager to ask")
)

const (
	// askTime is the timeout of a request. maxBytes is the maximum size of a response. keepFor is the lifetime of a cached response.
	askTime  = 10 * time.Second
	maxBytes = 32 << 20
	keepFor  = 5 * time.Second
)

// Options defines the connection to Alertmanager.
type Options struct {
	// URL is the address of Alertmanager; empty if the cluster has no Alertmanager, or Send is set.
	URL string
	// Send sends a request to the API of Alertmanager, and returns the status and the body of the response; nil sends requests to URL.
	Send func(ctx context.Context, method, path string, query url.Values, body []byte) (status int, answer []byte, err error)
	// Password reads Alertmanager's password. It is nil if Alertmanager has no password.
	Password func() (secret.String, error)
	Now      func() time.Time // nil is time.Now
	// Failed is called with the reason if Alertmanager doesn't respond.
	Failed func(error)
}

// Client is a client of one Alertmanager.
type Client struct {
	o    Options
	send func(ctx context.Context, method, path string, query url.Values, body []byte) (int, []byte, error) // nil without an Alertmanager

	mu    sync.Mutex
	have  []Alert
	err   error
	asked time.Time
}

// New returns a client. It doesn't send a request yet.
func New(o Options) (*Client, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Client{o: o, send: o.Send}
	if o.URL == "" || o.Send != nil {
		return c, nil
	}
	at, err := url.Parse(o.URL)
	if err != nil {
		return nil, errors.New("the address of Alertmanager is malformed")
	}
	c.send = (&direct{at, o.Password}).send
	return c, nil
}

// All returns the firing alerts, including silenced alerts. The result may be a few seconds old. Callers share the slice and must not change it.
func (c *Client) All(ctx context.Context) ([]Alert, error) {
	if c.send == nil {
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
	return c.have, c.err
}

// forget discards the cached response, so that the next call of All sends a request to Alertmanager.
func (c *Client) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = time.Time{}
}

// firing is the query for firing alerts, including silenced alerts.
var firing = url.Values{"active": {"true"}, "silenced": {"true"}, "inhibited": {"false"}, "unprocessed": {"false"}}

func (c *Client) ask(ctx context.Context) ([]Alert, error) {
	out := []Alert{}
	if err := c.call(ctx, http.MethodGet, "alerts", firing, nil, &out); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(out, func(a Alert) bool { return a.Labels["alertname"] == Heartbeat }), nil
}

// call sends a request to a path of the API. If out isn't nil, call decodes the response into out.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, body []byte, out any) error {
	if c.send == nil {
		return ErrNone
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	status, answer, err := c.send(ctx, method, "/api/v2/"+path, query, body)
	switch {
	case errors.Is(err, ErrNone):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", ErrAway, err)
	case status == http.StatusNotFound && strings.HasPrefix(path, oneSilence):
		return ErrNoSilence
	case status == http.StatusBadRequest:
		return &InvalidError{said(answer)}
	case status != http.StatusOK:
		return fmt.Errorf("%w: %d %s", ErrAway, status, http.StatusText(status))
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%w: read its answer: %w", ErrAway, err)
	}
	return nil
}
