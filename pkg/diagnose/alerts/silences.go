package alerts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Matcher selects alerts by one of their labels.
type Matcher struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Regex bool   `json:"isRegex"`
	// Equal is false if the matcher selects alerts whose label doesn't match. Older versions of Alertmanager omit this field.
	Equal *bool `json:"isEqual,omitempty"`
}

// Not reports whether the matcher selects alerts whose label doesn't match.
func (m *Matcher) Not() bool { return m.Equal != nil && !*m.Equal }

// States of a silence.
const (
	SilenceActive  = "active"
	SilencePending = "pending"
	SilenceExpired = "expired"
)

// Silence suppresses the notifications of alerts for some time. All of its matchers must match.
type Silence struct {
	ID        string    `json:"id,omitempty"`
	Matchers  []Matcher `json:"matchers"`
	StartsAt  time.Time `json:"startsAt"`
	EndsAt    time.Time `json:"endsAt"`
	CreatedBy string    `json:"createdBy"`
	Comment   string    `json:"comment"`
	Status    struct {
		State string `json:"state"`
	} `json:"status,omitzero"`
}

// ErrNoSilence means that Alertmanager has no silence with the given id.
var ErrNoSilence = errors.New("the silence is not found")

// InvalidError contains Alertmanager's reason for rejecting a silence.
type InvalidError struct{ Said string }

// Error implements error.
func (e *InvalidError) Error() string { return "Alertmanager refuses it: " + e.Said }

// longest limits the length of Alertmanager's message in an error, in bytes.
const longest = 500

// said returns the message of a rejected request. Alertmanager writes it as a JSON string.
func said(answer []byte) string {
	var text string
	if json.Unmarshal(answer, &text) != nil {
		text = string(answer)
	}
	text = strings.Join(strings.Fields(text), " ")
	return strings.ToValidUTF8(text[:min(len(text), longest)], "")
}

// silenceID matches valid IDs of silences. Any other text could lead to another path of the API.
var silenceID = regexp.MustCompile(`^[0-9a-fA-F-]{1,64}$`)

// Silences returns the silences that are active or pending, sorted by their end.
func (c *Client) Silences(ctx context.Context) ([]Silence, error) {
	all := []Silence{}
	if err := c.call(ctx, http.MethodGet, "silences", nil, nil, &all); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(s Silence) bool { return s.Status.State == SilenceExpired })
	slices.SortFunc(all, func(a, b Silence) int { return a.EndsAt.Compare(b.EndsAt) })
	return all, nil
}

// oneSilence is the prefix of the API path of a silence.
const oneSilence = "silence/"

// Silence returns one silence, even if it has ended.
func (c *Client) Silence(ctx context.Context, id string) (*Silence, error) {
	if !silenceID.MatchString(id) {
		return nil, ErrNoSilence
	}
	s := &Silence{}
	return s, c.call(ctx, http.MethodGet, oneSilence+url.PathEscape(id), nil, nil, s)
}

// Add creates a silence, and returns its id.
func (c *Client) Add(ctx context.Context, s Silence) (string, error) {
	body, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	out := struct {
		ID string `json:"silenceID"`
	}{}
	if err := c.call(ctx, http.MethodPost, "silences", nil, body, &out); err != nil {
		return "", fmt.Errorf("silence alerts: %w", err)
	}
	c.forget()
	return out.ID, nil
}

// End ends a silence now.
func (c *Client) End(ctx context.Context, id string) error {
	if !silenceID.MatchString(id) {
		return ErrNoSilence
	}
	defer c.forget()
	if err := c.call(ctx, http.MethodDelete, oneSilence+url.PathEscape(id), nil, nil, nil); err != nil {
		return fmt.Errorf("end a silence: %w", err)
	}
	return nil
}
