package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/openpai/paictl/pkg/job/code"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// PutCode uploads the archive of a code folder to the cluster, unless the user has uploaded it before. sent reports whether this call uploaded
// it.
func (c *Jobs) PutCode(ctx context.Context, _ string, a *code.Archive) (sent bool, err error) {
	path := api.Prefix + "/code/" + url.PathEscape(a.SHA256)
	err = c.ask(ctx, question{method: http.MethodHead, path: path, again: true}, nil)
	if err == nil {
		return false, nil
	}
	if e, ok := errors.AsType[*Error](err); !ok || e.Status != http.StatusNotFound {
		return false, explained(fmt.Errorf("ask whether the code is in the cluster: %w", err))
	}
	// The archive can be read only once, so this request can't be repeated. The previous request has already handled a rejected token or a
	// restart of the server.
	q := question{method: http.MethodPut, path: path, once: true, content: a.Content(), size: a.Size, header: http.Header{"Content-Type": {"application/gzip"}}}
	if err := c.ask(ctx, q, nil); err != nil {
		return false, explained(fmt.Errorf("send the code: %w", err))
	}
	return true, nil
}
