package job

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/job/api"
)

// Tag adds tags to the job that has the UID, and returns the resulting tags. If the job's Framework exists, the Framework holds the tags and the
// error is a Conflict error of the API.
func (h *History) Tag(ctx context.Context, uid string, tags ...string) ([]string, error) {
	return h.tags(ctx, http.MethodPut, uid, tags)
}

// Untag removes tags from the job that has the UID, and returns the resulting tags. It fails like Tag.
func (h *History) Untag(ctx context.Context, uid string, tags ...string) ([]string, error) {
	return h.tags(ctx, http.MethodDelete, uid, tags)
}

func (h *History) tags(ctx context.Context, method, uid string, tags []string) ([]string, error) {
	out := &api.Tags{}
	err := h.exchange(ctx, method, h.get("/v1/jobs/"+path(uid, "tags")).URL(), api.Tags{Tags: tags}, out)
	return out.Tags, err
}

// SaveAudit adds records to the audit. The audit doesn't change existing records, so the caller may send records again.
func (h *History) SaveAudit(ctx context.Context, records []audit.Record) error {
	return h.exchange(ctx, http.MethodPost, h.get("/v1/audit").URL(), records, nil)
}

// Audit reads a page of the audit, latest record first.
func (h *History) Audit(ctx context.Context, q audit.Query) (*audit.Page, error) {
	out := &audit.Page{}
	return out, h.exchange(ctx, http.MethodGet, h.with("/v1/audit", q.Values()), nil, out)
}

func (h *History) with(suffix string, v url.Values) *url.URL {
	to := h.get(suffix).URL()
	to.RawQuery = v.Encode()
	return to
}

// exchange sends in as the body of a request and decodes the response into out. Both may be nil.
func (h *History) exchange(ctx context.Context, method string, to *url.URL, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, historyTimeout)
	defer cancel()
	body := []byte(nil)
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	resp, err := h.Do(ctx, method, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("read the job controller's answer: %w", err)
	}
	return nil
}
