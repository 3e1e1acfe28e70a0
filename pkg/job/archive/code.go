package archive

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

const (
	// MaxCode is the maximum size of one archive of code in bytes. Tasks don't fetch larger archives.
	MaxCode = spec.MaxCode
	// chunk limits the memory for an upload. row limits the memory for a download and the size of a database row.
	chunk = 16 * row
	row   = 64 << 10
	// uploadTime is longer than any upload takes, because the server stops uploads earlier.
	uploadTime = time.Hour
	// codeGrace is how long code is kept although no job needs it, because its job may not have been submitted yet.
	codeGrace = 24 * time.Hour
)

// Errors of an upload that its sender must correct.
var (
	ErrTooLarge = errors.New("too large")
	ErrMismatch = errors.New("not what it was said to be")
)

// CheckCode returns an error if the SHA-256 sum or the size of an archive of code is invalid.
func CheckCode(sum string, size int64) error {
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != sha256.Size || hex.EncodeToString(raw) != sum {
		return fmt.Errorf("%w: %q is not a SHA-256 in 64 hex digits", ErrBadQuery, sum)
	}
	if size > MaxCode {
		return hint.Errorf("leave data and results out with .gitignore, and put large data on a storage",
			"%w: the code has %d MiB, and at most %d are accepted", ErrTooLarge, size>>20, MaxCode>>20)
	}
	if size < 0 {
		return fmt.Errorf("%w: the size is missing", ErrBadQuery)
	}
	return nil
}

// PutCode implements Store. It writes the chunks of the code as they arrive. Other requests can't see the chunks until the last chunk is written
// and the checksum is verified. So the whole code is never in memory, in a temporary file, or in one transaction.
func (d *database) PutCode(ctx context.Context, owner, sum string, size int64, r io.Reader) error {
	if err := CheckCode(sum, size); err != nil {
		return err
	}
	if found, err := d.touch(ctx, sum); err != nil {
		return err
	} else if found {
		return d.prove(ctx, owner, sum, size, r)
	}
	upload := rand.Text()
	if err := d.begin(ctx, upload, owner, sum, size); err != nil {
		return err
	}
	err := d.receive(ctx, upload, sum, size, r)
	if err == nil {
		err = d.complete(ctx, upload, owner, sum)
	}
	if err != nil {
		// If the client closed the connection, ctx has ended. So the cleanup uses another context.
		quiet, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return errors.Join(err, d.write(quiet, dropUpload(upload)...))
	}
	return nil
}

// roomForCode returns an error if an upload would exceed the limit for the code of all users, or the limit for the code of its owner. An upload
// in progress counts with its full size.
func (d *database) roomForCode(ctx context.Context, owner string, size int64) error {
	for _, l := range d.codeLimits(owner) {
		var have int64
		if err := d.read.QueryRowContext(ctx, d.rebind(l.query), l.args...).Scan(&have); err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		if have+size > l.limit {
			return hint.Errorf("remove jobs that you don't need, with their code: paictl job delete NAME --history; an administrator can set "+l.field+" of the section job-controller higher",
				"%w: %s has %d MiB, this one %d MiB more, and together they may have %d MiB", ErrTooLarge, l.whose, have>>20, size>>20, l.limit>>20)
		}
	}
	return nil
}

// codeLimit is a limit for code, with the query for how much code counts towards the limit.
type codeLimit struct {
	limit               int64
	whose, field, query string
	args                []any
}

// codeLimits returns the limits for the code of an owner. If the owner is empty, only the limit for all code applies. The owner is empty for a
// client that doesn't send an owner, and for archives that were written before owners were recorded.
func (d *database) codeLimits(owner string) []codeLimit {
	var out []codeLimit
	if d.codeLimit > 0 {
		out = append(out, codeLimit{d.codeLimit, "the code of all jobs", "retention.codeGiB", "SELECT COALESCE(SUM(size), 0) FROM code", nil})
	}
	if d.codeLimitPerUser > 0 && owner != "" {
		out = append(out, codeLimit{d.codeLimitPerUser, "the code of your jobs", "retention.codeGiBPerUser", "SELECT COALESCE(SUM(size), 0) FROM code WHERE owner = ?", []any{text(owner)}})
	}
	return out
}

// codeLock is the key of the lock that uploads hold in PostgreSQL while they check the limits.
const codeLock = 0x7061_6963_6f64_65

// begin writes the row for an upload if the limits allow the upload. If several uploads begin at the same time, only those that fit together get
// a row.
func (d *database) begin(ctx context.Context, upload, owner, sum string, size int64) error {
	var statements []statement
	insert := statement{"INSERT INTO code (upload, owner, sha256, size, stored, complete) SELECT ?, ?, ?, ?, ?, ?", []any{upload, text(owner), sum, size, d.now().UnixMicro(), false}}
	if d.dollars {
		// In PostgreSQL, statements don't see uncommitted rows of other connections, so a lock is needed. PostgreSQL also can't infer the types
		// of these parameters, so they are cast.
		statements = append(statements, statement{"SELECT pg_advisory_xact_lock(?)", []any{int64(codeLock)}})
		insert.query = "INSERT INTO code (upload, owner, sha256, size, stored, complete) SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BOOLEAN)"
	}
	for i, l := range d.codeLimits(owner) {
		insert.query += []string{" WHERE ", " AND "}[min(i, 1)] + "(" + l.query + ") <= ?"
		insert.args = append(append(insert.args, l.args...), l.limit-size)
	}
	if err := d.write(ctx, append(statements, insert)...); err != nil {
		return err
	}
	var there bool
	if err := d.read.QueryRowContext(ctx, d.rebind("SELECT EXISTS (SELECT 1 FROM code WHERE upload = ?)"), upload).Scan(&there); err != nil {
		return fmt.Errorf("read the archive: %w", err)
	}
	if there {
		return nil
	}
	if err := d.roomForCode(ctx, owner, size); err != nil {
		return err
	}
	return hint.Errorf("try again", "%w: other uploads have used the space for the code in the meantime", ErrTooLarge)
}

func dropUpload(upload string) []statement {
	return []statement{{"DELETE FROM code WHERE upload = ?", []any{upload}}} // with its chunks
}

// touch reports whether the code with a SHA-256 sum is stored. If so, touch records that the code is in use.
func (d *database) touch(ctx context.Context, sum string) (bool, error) {
	var upload string
	err := d.read.QueryRowContext(ctx, d.rebind("SELECT upload FROM code WHERE sha256 = ? AND complete"), sum).Scan(&upload)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the archive: %w", err)
	}
	return true, d.write(ctx, statement{"UPDATE code SET stored = ? WHERE upload = ?", []any{d.now().UnixMicro(), upload}})
}

// receive writes the chunks of an upload, and verifies the size and the checksum.
func (d *database) receive(ctx context.Context, upload, sum string, size int64, r io.Reader) error {
	hash := sha256.New()
	var total int64
	buffer := make([]byte, min(chunk, size+1))
	for n := 0; ; {
		// Reading up to one byte more than the announced size detects surplus data.
		read, err := io.ReadFull(r, buffer[:min(chunk, size+1-total)])
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("receive the code: %w", err)
		}
		data := buffer[:read]
		total += int64(read)
		if total > size {
			return fmt.Errorf("%w: the code has more than the %d bytes that were announced", ErrMismatch, size)
		}
		if len(data) == 0 {
			break
		}
		hash.Write(data)
		var rows []statement
		for data := range slices.Chunk(data, row) {
			rows = append(rows, statement{"INSERT INTO code_chunks (upload, n, data) VALUES (?, ?, ?)", []any{upload, n, data}})
			n++
		}
		if err := d.write(ctx, rows...); err != nil {
			return err
		}
	}
	if total < size {
		return fmt.Errorf("%w: the code has %d bytes, but %d were announced", ErrMismatch, total, size)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
		return fmt.Errorf("%w: the code's SHA-256 is %s, but %s was announced", ErrMismatch, got, sum)
	}
	return nil
}

// prove makes a user an owner of code that is already stored. It reads the whole code from the sender, because a user may know the checksum
// without having the code. If owner is "", prove reads nothing. That is the case for clients with the controller's own token.
func (d *database) prove(ctx context.Context, owner, sum string, size int64, r io.Reader) error {
	if owner == "" {
		return nil
	}
	hash := sha256.New()
	n, err := io.Copy(hash, io.LimitReader(r, size+1))
	if err != nil {
		return fmt.Errorf("receive the code: %w", err)
	}
	if n != size {
		return fmt.Errorf("%w: the code doesn't have the %d bytes that were announced", ErrMismatch, size)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
		return fmt.Errorf("%w: the code's SHA-256 is %s, but %s was announced", ErrMismatch, got, sum)
	}
	return d.write(ctx, own(owner, sum))
}

// own returns the statement that makes a user an owner of the code with a SHA-256 sum.
func own(owner, sum string) statement {
	return statement{"INSERT INTO code_owners (sha256, owner) VALUES (?, ?) ON CONFLICT (sha256, owner) DO NOTHING", []any{sum, text(owner)}}
}

// OwnsCode implements Store.
func (d *database) OwnsCode(ctx context.Context, owner, sum string) (bool, error) {
	if err := CheckCode(sum, 0); err != nil {
		return false, err
	}
	var owns bool
	err := d.read.QueryRowContext(ctx, d.rebind("SELECT EXISTS (SELECT 1 FROM code_owners WHERE sha256 = ? AND owner = ?)"), sum, text(owner)).Scan(&owns)
	if err != nil {
		return false, fmt.Errorf("read the archive: %w", err)
	}
	if !owns {
		return false, nil
	}
	return d.touch(ctx, sum)
}

// complete makes an upload the stored code for its SHA-256 sum, unless another upload of the same code was faster. It also makes the sender an
// owner of the code.
func (d *database) complete(ctx context.Context, upload, owner, sum string) error {
	first := statement{"UPDATE code SET complete = ? WHERE upload = ? AND NOT EXISTS (SELECT 1 FROM code other WHERE other.sha256 = ? AND other.complete)", []any{true, upload, sum}}
	late := statement{"DELETE FROM code WHERE upload = ? AND NOT complete", []any{upload}}
	all := []statement{first, late}
	if owner != "" {
		all = append(all, own(owner, sum))
	}
	err := d.write(ctx, all...)
	if err == nil {
		return nil
	}
	// Two uploads of the same code may have finished at the same time. The database's index accepts only one upload.
	if found, again := d.touch(ctx, sum); again == nil && found {
		return d.write(ctx, all[1:]...)
	}
	return err
}

// Code implements Store.
func (d *database) Code(ctx context.Context, sum string) (io.ReadSeekCloser, int64, error) {
	c := &codeReader{ctx: ctx, d: d}
	// An earlier paictl wrote longer rows. All rows of an upload except the last are as long as its first row.
	err := d.read.QueryRowContext(ctx, d.rebind(`SELECT upload, size, COALESCE((SELECT octet_length(data) FROM code_chunks WHERE code_chunks.upload = code.upload AND n = 0), 0)
		FROM code WHERE sha256 = ? AND complete`), sum).Scan(&c.upload, &c.size, &c.row)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, 0, fmt.Errorf("code %s: %w", sum, ErrNotFound)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the archive: %w", err)
	}
	c.row = max(c.row, 1)
	return c, c.size, nil
}

// codeReader reads code in pieces of at most one row. Between two reads, it holds neither a connection nor data, so that a slow reader doesn't
// delay others.
type codeReader struct {
	ctx    context.Context // the methods of a reader don't have one
	d      *database
	upload string
	size   int64
	row    int64 // bytes of each row of the upload, except the last
	at     int64
}

// Read implements io.Reader.
func (c *codeReader) Read(p []byte) (int, error) {
	if c.at >= c.size {
		return 0, io.EOF
	}
	var data []byte
	err := c.d.read.QueryRowContext(c.ctx, c.d.rebind("SELECT substr(data, ?, ?) FROM code_chunks WHERE upload = ? AND n = ?"),
		c.at%c.row+1, min(len(p), row), c.upload, c.at/c.row).Scan(&data)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, fmt.Errorf("the code was removed in the meantime: %w", io.ErrUnexpectedEOF)
	case err != nil:
		return 0, fmt.Errorf("read the archive: %w", err)
	case len(data) == 0:
		return 0, fmt.Errorf("the code is shorter than it was: %w", io.ErrUnexpectedEOF)
	}
	n := copy(p, data)
	c.at += int64(n)
	return n, nil
}

// Seek implements io.Seeker.
func (c *codeReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.at
	case io.SeekEnd:
		offset += c.size
	}
	if offset < 0 {
		return 0, errors.New("seek before the beginning of the code")
	}
	c.at = offset
	return offset, nil
}

// Close implements io.Closer.
func (*codeReader) Close() error { return nil }
