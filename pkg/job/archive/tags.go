package archive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// tagsColumn returns tags as a column value. Each tag has a comma before and after it, so that a query can find a single tag.
func tagsColumn(tags []string) string {
	if len(tags) == 0 {
		return ""
	}
	return "," + text(v1.WriteTags(tags)) + ","
}

// readTags parses the column value.
func readTags(column string) []string { return v1.ReadTags(strings.Trim(column, ",")) }

// Tag implements Store. If another request changes the tags of the job at the same time, Tag reads the tags again and repeats the change.
func (d *database) Tag(ctx context.Context, uid string, add, remove []string) ([]string, error) {
	for _, tag := range slices.Concat(add, remove) {
		if !v1.ValidTag(tag) {
			return nil, fmt.Errorf("%w: a tag has 1 to %d bytes, and no comma", ErrBadQuery, v1.MaxTag)
		}
	}
	for range 20 {
		before, err := d.tagsOf(ctx, uid)
		if err != nil {
			return nil, err
		}
		want := slices.DeleteFunc(slices.Concat(readTags(before), add), func(tag string) bool { return slices.Contains(remove, tag) })
		slices.Sort(want)
		want = slices.Compact(want)
		after := tagsColumn(want)
		switch {
		case after == before:
			return want, nil
		case len(want) > v1.MaxTags:
			return nil, fmt.Errorf("%w: a job has at most %d tags", ErrBadQuery, v1.MaxTags)
		}
		if err := d.write(ctx, statement{"UPDATE jobs SET tags = ? WHERE uid = ? AND tags = ?", []any{after, uid, before}}); err != nil {
			return nil, err
		}
		now, err := d.tagsOf(ctx, uid)
		if err != nil {
			return nil, err
		}
		has := readTags(now)
		missing := slices.ContainsFunc(add, func(tag string) bool { return !slices.Contains(has, tag) })
		left := slices.ContainsFunc(remove, func(tag string) bool { return slices.Contains(has, tag) })
		if !missing && !left {
			return has, nil
		}
	}
	return nil, errors.New("write to the archive: the tags of the job change all the time")
}

// tagsOf returns the tags column of a job whose Framework is gone.
func (d *database) tagsOf(ctx context.Context, uid string) (column string, err error) {
	var gone int
	err = d.read.QueryRowContext(ctx, d.rebind("SELECT tags, gone FROM jobs WHERE uid = ?"), uid).Scan(&column, &gone)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", fmt.Errorf("job %s: %w", uid, ErrNotFound)
	case err != nil:
		return "", fmt.Errorf("read the archive: %w", err)
	case gone == 0:
		return "", fmt.Errorf("job %s: %w", uid, ErrNotGone)
	}
	return column, nil
}
