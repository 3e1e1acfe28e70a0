package job

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// ClonedFrom returns the original of a cloned job, or nil.
func (j *Job) ClonedFrom() *v1.ClonedFrom {
	switch {
	case j.framework != nil:
		return v1.ReadClonedFrom(j.framework.Annotations[v1.AnnotationClonedFrom])
	case j.archived != nil:
		return j.archived.ClonedFrom
	}
	return nil
}

// AsParent returns the reference to this job that its clones store.
func (j *Job) AsParent() *v1.ClonedFrom {
	out := &v1.ClonedFrom{User: j.User, Name: j.Name, VirtualCluster: j.VirtualCluster()}
	switch {
	case j.framework != nil:
		out.UID, out.Submitted = j.framework.UID, j.framework.CreationTimestamp.UTC()
	case j.archived != nil:
		out.UID, out.Submitted = types.UID(j.archived.UID), j.archived.Submitted.UTC()
	}
	return out
}

// ResolveUID finds the job with exactly that user, name and UID, even if a later job has the name now. Without a UID, it finds the latest job with
// the name.
func (c *Client) ResolveUID(ctx context.Context, user, name string, uid types.UID) (*Job, error) {
	j, err := c.ResolveExact(ctx, user, name)
	if uid == "" || err != nil && !IsNotFound(err) || err == nil && j.UID == string(uid) {
		return j, err
	}
	past, err := c.History.Job(ctx, string(uid))
	switch {
	case apierrors.IsNotFound(err):
		return nil, notFound(user, name, nil)
	case err != nil:
		return nil, notFound(user, name, err)
	case past.User != user || past.Name != name || past.UID != string(uid): // uid may be the name of a Framework
		return nil, notFound(user, name, nil)
	}
	return Past(past), nil
}
