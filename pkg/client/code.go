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

// PutCode sends a folder to the cluster, unless the user has sent it before. sent reports whether this call sent it.
func (c *Jobs) PutCode(ctx context.Context, _ string, a *code.Archive) (sent bool, err error) {
	path := api.Prefix + "/code/" + url.PathEscape(a.SHA256)
	err = c.ask(ctx, question{method: http.MethodHead, path: path, again: true}, nil)
	if err == nil {
		return false, nil
	}
	if e, ok := errors.AsType[*Error](err); !ok || e.Status != http.StatusNotFound {
		return false, explained(fmt.Errorf("ask whether the code is in the cluster: %w", err))
	}
	// The archive can be read only once: the previous request already handled a rejected token, or a server that is being replaced.
	q := question{method: http.MethodPut, path: path, once: true, content: a.Content(), size: a.Size, header: http.Header{"Content-Type": {"application/gzip"}}}
	if err := c.ask(ctx, q, nil); err != nil {
		return false, explained(fmt.Errorf("send the code: %w", err))
	}
	return true, nil
}
