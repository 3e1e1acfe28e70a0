package send

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/openpai/paictl/pkg/alerthandler/notify"
)

const (
	// mostAnswer limits how much of a response is read, in bytes.
	mostAnswer = 64 << 10
	// mostRedirects limits how many redirects a request follows.
	mostRedirects = 3
)

// Webhook is the channel that sends messages to one webhook.
type Webhook struct {
	c      notify.Webhook
	guard  *guard
	proxy  bool
	client *http.Client
	now    func() time.Time
}

// NewWebhook returns a Webhook for a valid configuration.
func NewWebhook(w *notify.Webhook, c *notify.Config) (*Webhook, error) {
	g := &guard{inside: inside()}
	for _, list := range []struct {
		name string
		text []string
		into *[]netip.Prefix
	}{{"webhookNetworks", c.WebhookNetworks, &g.allowed}, {"clusterNetworks", c.ClusterNetworks, &g.cluster}} {
		for _, text := range list.text {
			p, err := netip.ParsePrefix(text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", list.name, err)
			}
			*list.into = append(*list.into, p)
		}
	}
	return newWebhook(w, c.WebhookProxy, g, timeout)
}

func newWebhook(w *notify.Webhook, proxy string, g *guard, timeout time.Duration) (*Webhook, error) {
	transport := &http.Transport{
		// Proxy stays nil without the setting, so that environment variables don't redirect messages.
		DialContext:         (&net.Dialer{Timeout: timeout, Control: g.control}).DialContext,
		TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: timeout, MaxResponseHeaderBytes: mostAnswer, DisableKeepAlives: true, ForceAttemptHTTP2: true,
	}
	if proxy != "" {
		u, err := url.Parse(proxy)
		if err != nil {
			return nil, errors.New("webhookProxy is not an address")
		}
		transport.Proxy = http.ProxyURL(u)
		// The proxy may be inside the site. The proxy resolves the names, so it must block servers inside the site itself. Send checks only IP
		// addresses.
		transport.DialContext = (&net.Dialer{Timeout: timeout}).DialContext
	}
	out := &Webhook{c: *w, guard: g, proxy: proxy != "", now: time.Now}
	out.client = &http.Client{Transport: transport, Timeout: timeout, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > mostRedirects {
			return fmt.Errorf("more than %d redirects", mostRedirects)
		}
		if via[len(via)-1].URL.Scheme == "https" && r.URL.Scheme != "https" {
			return errors.New("a redirect from https to another scheme is refused")
		}
		if r.Method != http.MethodPost {
			return errors.New("the redirect doesn't forward the message")
		}
		r.Header.Del("Referer") // it has the address, which is a secret
		if proxy != "" {
			return literal(g, r.URL)
		}
		return nil
	}}
	return out, nil
}

// literal checks a URL that contains an IP address instead of a name. No other check covers such a URL when a proxy is used.
func literal(g *guard, u *url.URL) error {
	if a, err := netip.ParseAddr(u.Hostname()); err == nil {
		return g.check(a)
	}
	return nil
}

// Open returns w, because each message uses a new connection.
func (w *Webhook) Open(context.Context) (notify.Session, error) { return w, nil }

// Close does nothing.
func (w *Webhook) Close() {}

// Send sends one message.
func (w *Webhook) Send(ctx context.Context, _ string, m *notify.Message) error {
	address, body, err := w.request(m)
	if err != nil {
		return err
	}
	var written atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(i httptrace.WroteRequestInfo) { written.Store(i.Err == nil) }})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return errors.New("the address is not valid") // the cause would show it
	}
	if w.proxy {
		if err := literal(w.guard, r.URL); err != nil {
			return err
		}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "pai-alert-handler")
	r.Header.Set("Idempotency-Key", m.ID)
	resp, err := w.client.Do(r)
	if err != nil {
		var shown *url.Error
		if errors.As(err, &shown) {
			err = shown.Err // without the address
		}
		if written.Load() && (errors.Is(err, context.DeadlineExceeded) || timedOut(err)) {
			return fmt.Errorf("%w: no answer from %s", notify.ErrUnknown, w.c.Name)
		}
		return fmt.Errorf("reach %s: %w", w.c.Name, plain(err))
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%w: %s answered %d", notify.ErrRefused, w.c.Name, resp.StatusCode)
	}
	if err != nil {
		return fmt.Errorf("%w: the answer of %s was interrupted", notify.ErrUnknown, w.c.Name)
	}
	return w.verdict(answer)
}

func timedOut(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// verdict checks the responses of Feishu and DingTalk, which report errors with status 200.
func (w *Webhook) verdict(answer []byte) error {
	if w.c.Type != notify.TypeFeishu && w.c.Type != notify.TypeDingTalk {
		return nil
	}
	var v struct {
		Code    int `json:"code"`
		ErrCode int `json:"errcode"`
	}
	if err := json.Unmarshal(answer, &v); err != nil {
		return fmt.Errorf("%w: the answer of %s is not JSON", notify.ErrRefused, w.c.Name)
	}
	if code := v.Code + v.ErrCode; code != 0 {
		return fmt.Errorf("%w: %s answered with the code %d", notify.ErrRefused, w.c.Name, code)
	}
	return nil
}
