package job

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/hint"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// tagTries is how often Tag tries to write tags if there are conflicts.
const tagTries = 8

// Tag adds and removes tags of a job, and returns the resulting tags. If the Framework of a finished job no longer exists, Tag changes the tags in
// the history.
func (c *Client) Tag(ctx context.Context, j *Job, add, remove []string) ([]string, error) {
	for _, tag := range slices.Concat(add, remove) {
		if !v1.ValidTag(tag) || strings.ContainsFunc(tag, unicode.IsControl) {
			return nil, hint.Errorf(fmt.Sprintf("a tag has 1 to %d bytes, no comma and no control character", v1.MaxTag), "that can't be a tag")
		}
	}
	if j.Live {
		for range tagTries {
			tags, err := c.tagLive(ctx, j, add, remove)
			switch {
			case err == nil:
				return tags, nil
			case apierrors.IsNotFound(err):
				return c.tagGone(ctx, j, add, remove) // it was removed in the meantime
			case !apierrors.IsConflict(err):
				return nil, c.Explain(fmt.Errorf("tag %s: %w", j.Title(), err))
			}
		}
		return nil, &UnavailableError{fmt.Errorf("tag %s: it changes all the time", j.Title())}
	}
	return c.tagGone(ctx, j, add, remove)
}

// tagLive changes the tags in the Framework's annotation. It fails if the Framework was changed after tagLive read it.
func (c *Client) tagLive(ctx context.Context, j *Job, add, remove []string) ([]string, error) {
	f, err := c.Frameworks.Get(ctx, j.Object)
	if err != nil {
		return nil, err
	}
	if string(f.UID) != j.UID {
		return nil, apierrors.NewNotFound(v1.Resource.GroupResource(), j.Object) // another job has its name now
	}
	want := changed(v1.ReadTags(f.Annotations[v1.AnnotationTags]), add, remove)
	if len(want) > v1.MaxTags {
		return nil, hint.Errorf("remove some first", "a job has at most %d tags", v1.MaxTags)
	}
	text := v1.WriteTags(want)
	if text == f.Annotations[v1.AnnotationTags] {
		return want, nil
	}
	var value any = text
	if text == "" {
		value = nil // this removes the annotation
	}
	patch := map[string]any{"metadata": map[string]any{"resourceVersion": f.ResourceVersion, "annotations": map[string]any{v1.AnnotationTags: value}}}
	_, err = c.Frameworks.Patch(ctx, j.Object, types.MergePatchType, patch)
	return want, err
}

func (c *Client) tagGone(ctx context.Context, j *Job, add, remove []string) (tags []string, err error) {
	if len(remove) > 0 {
		tags, err = c.History.Untag(ctx, j.UID, remove...)
	}
	if err == nil && len(add) > 0 {
		tags, err = c.History.Tag(ctx, j.UID, add...)
	}
	return tags, c.Explain(err)
}

// changed returns have with the tags in add and without the tags in remove, sorted.
func changed(have, add, remove []string) []string {
	out := slices.DeleteFunc(slices.Concat(have, add), func(tag string) bool { return slices.Contains(remove, tag) })
	slices.Sort(out)
	return slices.Compact(out)
}

// Tags returns the tags that the job had when it was read.
func (j *Job) Tags() []string {
	switch {
	case j.framework != nil:
		return v1.ReadTags(j.framework.Annotations[v1.AnnotationTags])
	case j.archived != nil:
		return j.archived.Tags
	}
	return nil
}
