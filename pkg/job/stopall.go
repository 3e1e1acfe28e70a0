package job

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// StopAll requests that all live jobs of a user stop. It returns the number of jobs that weren't stopping already.
func (c *Client) StopAll(ctx context.Context, user string) (stopped int, err error) {
	all, err := c.Frameworks.List(ctx, v1.LabelUser+"="+user)
	if apierrors.IsNotFound(err) {
		return 0, nil // the cluster doesn't run jobs
	}
	if err != nil {
		return 0, c.Explain(fmt.Errorf("list the jobs of %s: %w", user, err))
	}
	var failed []error
	for i := range all {
		j := Of(&all[i])
		if j.Ended() || j.Stopping() {
			continue
		}
		if _, err := c.Stop(ctx, j); err != nil && !apierrors.IsNotFound(err) {
			failed = append(failed, err)
			continue
		}
		stopped++
	}
	if len(failed) > 0 {
		return stopped, fmt.Errorf("%s of %s not stopped: %w", plural.Of(len(failed), "job"), user, errors.Join(failed...))
	}
	return stopped, nil
}
