package job

import (
	"context"

	"github.com/openpai/paictl/pkg/job/protocol"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// ResolveExact finds a user's job by its name. Unlike Resolve, it doesn't accept the name of a Framework. It compares the user and the name of the
// job that it finds, because the names of Frameworks are checksums, and collisions can be made on purpose.
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
