package archive

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/hint"
)

const (
	// auditBatch is the maximum number of records in one write. auditText is the maximum length of one text in a record; longer texts are cut.
	auditBatch = 500
	auditText  = 4 << 10
	// auditPruned is how many records one statement removes. It is small so that other writes don't wait long.
	auditPruned = 10_000
)

var auditID = regexp.MustCompile(`^[A-Za-z0-9-]{20,64}$`)

func auditRow() *upsert {
	return &upsert{"audit", []string{
		"id", "time", "request", "actor", "actor_uid", "token", "address", "verb", "kind", "object", "owner", "vc", "outcome", "status", "reason", "detail",
	}, "(id) DO NOTHING"}
}

// SaveAudit implements Store.
func (d *database) SaveAudit(ctx context.Context, records []audit.Record) error {
	if len(records) > auditBatch {
		return fmt.Errorf("%w: %d records, and at most %d are taken at once", ErrBadQuery, len(records), auditBatch)
	}
	rows := make([][]any, 0, len(records))
	for i := range records {
		r := &records[i]
		if !auditID.MatchString(r.ID) || r.Time.IsZero() || r.Verb == "" || r.Kind == "" || r.Outcome == "" {
			return fmt.Errorf("%w: a record needs an id of 20 to 64 letters and digits, a time, a verb, a kind and an outcome", ErrBadQuery)
		}
		row := []any{r.ID, r.Time.UnixMicro()}
		for _, t := range []string{r.Request, r.Actor, r.ActorUID, r.Token, r.Address, r.Verb, r.Kind, r.Object, r.Owner, r.VC, r.Outcome} {
			row = append(row, short(t))
		}
		detail := ""
		if len(r.Detail) > 0 {
			data, err := json.Marshal(r.Detail)
			if err != nil {
				return err
			}
			if detail = text(string(data)); len(data) > auditText {
				detail = fmt.Sprintf(`{"omitted": "%d bytes"}`, len(data)) // the record itself is more important
			}
		}
		rows = append(rows, append(row, r.Status, short(r.Reason), detail))
	}
	if len(rows) == 0 {
		return nil
	}
	return d.write(ctx, auditRow().rows(lastOfEach(rows, 1))...)
}

// short returns a text that the archive can store. The text is cut to auditText bytes, because a client may have chosen it.
func short(s string) string {
	if len(s) > auditText {
		s = s[:auditText]
	}
	return text(s)
}

// Audit implements Store. Each page continues after the last record of the page before, so records that are added between two requests don't
// cause other records to be repeated or left out.
func (d *database) Audit(ctx context.Context, q audit.Query) (*audit.Page, error) {
	if q.Limit == 0 {
		q.Limit = audit.DefaultPage
	}
	if q.Limit < 1 || q.Limit > audit.MaxPage {
		return nil, hint.Errorf(fmt.Sprintf("request 1 to %d records per page", audit.MaxPage), "%w: limit %d", ErrBadQuery, q.Limit)
	}
	where, args := []string{"1 = 1"}, []any{}
	add := func(condition string, values ...any) { where, args = append(where, condition), append(args, values...) }
	for _, c := range []struct{ column, value string }{
		{"actor", q.Actor}, {"object", q.Object}, {"owner", q.Owner}, {"kind", q.Kind}, {"verb", q.Verb}, {"outcome", q.Outcome},
	} {
		if c.value != "" {
			add(c.column+" = ?", text(c.value))
		}
	}
	if !q.Since.IsZero() {
		add("time >= ?", q.Since.UnixMicro())
	}
	if !q.Until.IsZero() {
		add("time < ?", q.Until.UnixMicro())
	}
	if q.Cursor != "" {
		at, id, err := readAuditCursor(q.Cursor)
		if err != nil {
			return nil, err
		}
		add("(time, id) < (?, ?)", at, id)
	}
	rows, err := d.read.QueryContext(ctx, d.rebind("SELECT "+strings.Join(auditRow().columns, ", ")+" FROM audit WHERE "+strings.Join(where, " AND ")+" ORDER BY time DESC, id DESC LIMIT ?"), append(args, q.Limit+1)...)
	if err != nil {
		return nil, fmt.Errorf("read the audit: %w", err)
	}
	page := &audit.Page{Items: []audit.Record{}}
	err = each(rows, func() error {
		var r audit.Record
		var at int64
		var detail string
		err := rows.Scan(&r.ID, &at, &r.Request, &r.Actor, &r.ActorUID, &r.Token, &r.Address, &r.Verb, &r.Kind, &r.Object, &r.Owner, &r.VC, &r.Outcome, &r.Status, &r.Reason, &detail)
		if err == nil && detail != "" {
			err = json.Unmarshal([]byte(detail), &r.Detail)
		}
		r.Time = instant(at)
		page.Items = append(page.Items, r)
		return err
	})
	if err == nil && len(page.Items) > q.Limit {
		page.Items = page.Items[:q.Limit]
		last := &page.Items[q.Limit-1]
		page.Next = base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "1 %d %s", last.Time.UnixMicro(), last.ID))
	}
	return page, err
}

func readAuditCursor(cursor string) (at int64, id string, err error) {
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		_, err = fmt.Sscanf(string(data), "1 %d %s", &at, &id)
	}
	if err != nil || !auditID.MatchString(id) {
		return 0, "", hint.Errorf("use the cursor of the previous page, or none", "%w: the cursor %q is not valid", ErrBadQuery, cursor)
	}
	return at, id, nil
}

// PruneAudit implements Store. If the audit has too many records, PruneAudit first removes records of clients that weren't signed in. Anyone can
// cause such records, and they must not displace the records of users.
func (d *database) PruneAudit(ctx context.Context, before time.Time, rows int64) error {
	if !before.IsZero() {
		if err := d.write(ctx, statement{"DELETE FROM audit WHERE time < ?", []any{before.UnixMicro()}}); err != nil {
			return err
		}
	}
	for _, which := range []string{"actor = ''", "1 = 1"} {
		for rows > 0 {
			var have int64
			if err := d.read.QueryRowContext(ctx, "SELECT COUNT(*) FROM audit").Scan(&have); err != nil {
				return fmt.Errorf("count the audit: %w", err)
			}
			if have <= rows {
				return nil
			}
			var gone int64
			query := d.rebind("SELECT COUNT(*) FROM (SELECT 1 FROM audit WHERE " + which + " LIMIT ?) AS oldest")
			if err := d.read.QueryRowContext(ctx, query, min(have-rows, auditPruned)).Scan(&gone); err != nil {
				return fmt.Errorf("count the audit: %w", err)
			}
			if gone == 0 {
				break
			}
			if err := d.write(ctx, statement{"DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE " + which + " ORDER BY time, id LIMIT ?)", []any{gone}}); err != nil {
				return err
			}
		}
	}
	return nil
}
