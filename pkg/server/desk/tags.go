package desk

import (
	"context"
	"net/http"
	"slices"

	"github.com/openpai/paictl/pkg/server/wire"
)

// Tag gives the job tags, and returns those that it has then.
func (j *Job) Tag(ctx context.Context, tags []string) (out []string, err error) {
	err = j.change(ctx, "job.tag", map[string]string{"change": "add"}, func(ctx context.Context) (err error) {
		out, err = j.desk.shop.Jobs.Tag(ctx, j.job, tags, nil)
		return err
	})
	return out, err
}

// Untag takes tags away. One that the job hasn't got is an error.
func (j *Job) Untag(ctx context.Context, tags []string) (out []string, err error) {
	err = j.change(ctx, "job.tag", map[string]string{"change": "remove"}, func(ctx context.Context) (err error) {
		have := j.job.Tags()
		for _, tag := range tags {
			if !slices.Contains(have, tag) {
				return &wire.Error{Status: http.StatusNotFound, Code: "NoTagError", Message: "The job doesn't have that tag."}
			}
		}
		out, err = j.desk.shop.Jobs.Tag(ctx, j.job, nil, tags)
		return err
	})
	return out, err
}
