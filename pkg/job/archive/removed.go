package archive

import (
	"context"
	"fmt"

	"github.com/openpai/paictl/pkg/job/api"
)

// Unended implements Store. A job has a row before its end only if the job was retried or its holds were saved.
func (d *database) Unended(ctx context.Context) ([]api.Job, error) {
	rows, err := d.read.QueryContext(ctx, d.rebind("SELECT "+jobColumns+" FROM jobs WHERE completed IS NULL"))
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	var out []api.Job
	err = each(rows, func() error {
		j, err := scanJob(rows.Scan)
		out = append(out, j)
		return err
	})
	return out, err
}

// EndRemoved implements Store. It doesn't change an end that another writer has recorded, because that end has more detail.
func (d *database) EndRemoved(ctx context.Context, uids []string) error {
	const n = 500 // of one statement
	var out []statement
	for ; len(uids) > 0; uids = uids[min(n, len(uids)):] {
		marks, args := list(uids[:min(n, len(uids))])
		out = append(out, endHolds("uid IN "+marks, args...), statement{"UPDATE jobs SET state = ?, phrase = ?, completed = ? WHERE completed IS NULL AND uid IN " + marks,
			append([]any{api.Deleted, api.PhraseGone, d.now().UnixMicro()}, args...)},
			statement{"UPDATE jobs SET gone = 1 WHERE uid IN " + marks, args})
	}
	return d.write(ctx, out...)
}
