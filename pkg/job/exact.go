package job

import (
	"context"

	v1 "github.com/openpai/paictl/pkg/framework/v1"
	"github.com/openpai/paictl/pkg/protocol"
)

// ResolveExact finds a user's job by its name alone. Unlike Resolve it takes no names of Frameworks, and a job that says it is
// another user's, or has another name, is none: names of Frameworks are checksums, which can be made to meet.
func (c *Client) ResolveExact(ctx context.Context, user, name string) (*Job, error) {
	if user == "" || protocol.CheckName(name) != nil {
		return nil, notFound(user, name, nil)
	}
	if owner, short, err := protocol.SplitName(name); err != nil || owner != "" || short != name {
		return nil, notFound(user, name, nil)
	}
	j, err := c.find(ctx, user, name, v1.ObjectName(user, name))
	if err != nil {
		return nil, err
	}
	if j.User != user || j.Name != name {
		return nil, notFound(user, name, nil)
	}
	return j, nil
}
