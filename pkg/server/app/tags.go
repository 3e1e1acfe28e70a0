package app

import (
	"context"
	"net/http"
	"slices"

	"github.com/openpai/paictl/pkg/server/wire"
)

// Tag adds tags to the job, and returns all tags of the job.
func (j *Job) Tag(ctx context.Context, tags []string) (out []string, err error) {
	err = j.change(ctx, "job.tag", map[string]string{"change": "add"}, func(ctx context.Context) (err error) {
		out, err = j.actions.app.Jobs.Tag(ctx, j.job, tags, nil)
		return err
	})
	return out, err
}

// Untag removes tags from the job, and returns the remaining tags. It returns an error for a tag that the job doesn't have.
func (j *Job) Untag(ctx context.Context, tags []string) (out []string, err error) {
	err = j.change(ctx, "job.tag", map[string]string{"change": "remove"}, func(ctx context.Context) (err error) {
		have := j.job.Tags()
		for _, tag := range tags {
			if !slices.Contains(have, tag) {
				return &wire.Error{Status: http.StatusNotFound, Code: "NoTagError", Message: "The job doesn't have that tag."}
			}
		}
		out, err = j.actions.app.Jobs.Tag(ctx, j.job, nil, tags)
		return err
	})
	return out, err
}
