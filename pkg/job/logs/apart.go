package logs

import (
	"context"
	"net/url"

	"github.com/openpai/paictl/pkg/job"
)

// Apart reports whether the streams of a task's log can be read one by one: an agent of log-manager must keep the log and know its streams.
func Apart(ctx context.Context, c *job.Client, node, uid string) bool {
	if node == "" || uid == "" {
		return false
	}
	resp, err := c.History.Page(ctx, node, uid, container, url.Values{"tail": {"0"}, "stream": {"stdout"}})
	if err != nil {
		return false // an earlier agent refuses the question
	}
	return resp.Body.Close() == nil
}
