package job

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// Owns reports whether a user with the name, or with the name in lower case, owns a job that is live or in the history. Folders of storages have the
// names of owners, and file systems may ignore case.
func (c *Client) Owns(ctx context.Context, name string) (bool, error) {
	names := slices.Compact([]string{name, strings.ToLower(name)})
	for _, owner := range names {
		live, err := answer[v1.FrameworkList](ctx, c.Frameworks.on(c.Frameworks.rest.Get(), "").Param("limit", "1").Param("labelSelector", v1.LabelUser+"="+owner))
		if err == nil && len(live.Items) > 0 {
			return true, nil
		}
		if err != nil && !apierrors.IsNotFound(err) { // a cluster may not know jobs yet
			return false, err
		}
	}
	for _, owner := range names {
		page, err := c.History.Jobs(ctx, api.JobQuery{User: owner, Limit: 1})
		if err != nil {
			return false, err
		}
		if len(page.Items) > 0 {
			return true, nil
		}
	}
	return false, nil
}
