package logs

import (
	"context"
	"net/url"

	"github.com/openpai/paictl/pkg/job"
)

// Apart reports whether stdout and stderr of a task can be read separately. This requires that an agent of log-manager keeps the log and knows
// the streams.
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
