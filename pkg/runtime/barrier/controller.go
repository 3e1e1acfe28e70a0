package barrier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/openpai/paictl/pkg/runtime/peers"
)

const (
	dialTime = 10 * time.Second
	// maxPeers is the maximum size of a response with addresses. The addresses of 10,000 tasks take about 100 KB.
	maxPeers = 4 << 20
	// maxReason is the maximum size of the error message that is read from a response.
	maxReason = 4 << 10
)

// Controller reads the peers from the job controller. The job controller sends the peers when all tasks have an address.
type Controller struct {
	URL     string // the URL of the job's peers
	Token   string // of the job
	Attempt int    // the attempt of the Framework

	client *http.Client
	seen   uint64 // the version of its last message
}

// answerError is a response without peers.
type answerError struct {
	code    int
	message string
}

func (e *answerError) Error() string {
	return fmt.Sprintf("the job controller answers %d: %s", e.code, e.message)
}

func (*Controller) name() string { return "the job controller" }

func (c *Controller) close() {
	if c.client != nil {
		c.client.CloseIdleConnections()
	}
}

// watch waits for peers that differ from the last message.
func (c *Controller) watch(ctx context.Context, period time.Duration, opened func(), found func([]byte) bool) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, period+10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s?attempt=%d&seen=%d", c.URL, c.Attempt, c.seen), nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Authorization", "Bearer "+c.Token)
	res, err := c.open().Do(req)
	var where *url.Error
	if errors.As(err, &where) {
		return false, fmt.Errorf("%s: %w", req.URL.Host, where.Err)
	}
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		reason, _ := io.ReadAll(io.LimitReader(res.Body, maxReason)) // the code is enough without the reason
		return false, &answerError{res.StatusCode, string(reason)}
	}
	opened()
	var m peers.Message
	switch err := json.NewDecoder(io.LimitReader(res.Body, maxPeers)).Decode(&m); {
	case errors.Is(err, io.EOF):
		return false, nil // the peers aren't complete yet
	case err != nil:
		return false, fmt.Errorf("read the peers: %w", err)
	}
	// The connection isn't encrypted. The seal ensures that an attacker without the token can't send false addresses.
	if !peers.Sealed(c.Token, m.Data, m.Seal) {
		return false, errors.New("the received peers are not from the job controller: their seal is wrong")
	}
	c.seen = m.Version
	return found(m.Data), nil
}

// open returns an HTTP client without a proxy, because the environment of the image may specify a proxy.
func (c *Controller) open() *http.Client {
	if c.client == nil {
		c.client = &http.Client{Transport: &http.Transport{
			DialContext: (&net.Dialer{Timeout: dialTime}).DialContext, DisableCompression: true, MaxIdleConns: 1, IdleConnTimeout: time.Minute,
		}}
	}
	return c.client
}
