package archive

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/openpai/paictl/pkg/hint"
)

// Options specify where to store the archive.
type Options struct {
	// Path is the file of an SQLite database. Its folder must exist.
	Path string
	// DSN is the data source name of a PostgreSQL database, in the form postgres://… or "host=… dbname=…". If it is set, Path is ignored.
	DSN string
	// Scratch is the folder for the temporary file of an import into PostgreSQL. An import into SQLite puts that file beside the
	// database.
	Scratch string
	// CodeLimit is the maximum size of all code together, in bytes. Zero means no limit.
	CodeLimit int64
	// CodeLimitPerUser is the maximum size of the code that one user sent, in bytes. Zero means no limit.
	CodeLimitPerUser int64
	// Now returns the current time. If it is nil, time.Now is used.
	Now func() time.Time
	// Replaced is called if the file was damaged and has been replaced. It may be nil.
	Replaced func(*Replaced)
}

// Shared reports whether several replicas can use the archive at the same time.
func (o Options) Shared() bool { return o.DSN != "" }

// Open opens the archive. It creates the archive if it doesn't exist, and migrates the tables to this program's version.
func Open(ctx context.Context, o Options) (Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &database{now: o.Now, codeLimit: o.CodeLimit, codeLimitPerUser: o.CodeLimitPerUser, scratch: o.Scratch, failed: make(chan error, 1)}
	var err error
	if o.DSN != "" {
		err = d.openPostgres(ctx, o.DSN)
	} else {
		err = d.openSQLite(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// database is a Store. The SQLite and the PostgreSQL database differ in how they are opened and how they combine writes.
type database struct {
	now     func() time.Time
	read    *sql.DB
	writer  writer
	dollars bool // parameters are $1, $2
	// tidy frees disk space after rows were removed.
	tidy func(context.Context) error

	codeLimit, codeLimitPerUser int64

	path      string // the path of the file; empty for PostgreSQL
	scratch   string // folder for imports into PostgreSQL
	importing sync.Mutex
	exporting sync.Mutex
	once      sync.Once
	failed    chan error // with room for one
}

// writer runs statements as one transaction.
type writer interface {
	write(ctx context.Context, statements []statement) error
	close() error
}

// statement is one change with its arguments. It refers to no data of the caller, so that it can be executed after the caller has continued.
type statement struct {
	query string
	args  []any
}

func (d *database) write(ctx context.Context, statements ...statement) error {
	for i := range statements {
		statements[i].query = d.rebind(statements[i].query)
	}
	return d.writer.write(ctx, statements)
}

// rebind replaces the question marks of a query with the placeholders that the database uses. The queries contain no question marks in string
// literals.
func (d *database) rebind(query string) string {
	if !d.dollars {
		return query
	}
	var out strings.Builder
	for n, part := range strings.Split(query, "?") {
		if n > 0 {
			fmt.Fprintf(&out, "$%d", n)
		}
		out.WriteString(part)
	}
	return out.String()
}

// Close closes the database after all accepted writes are finished.
func (d *database) Close() error { return errors.Join(d.writer.close(), d.read.Close()) }

//go:embed migrations
var migrations embed.FS

// migrate migrates the tables to this program's version. It returns an error if the tables have a newer version.
func migrate(ctx context.Context, dialect goose.Dialect, db *sql.DB, options ...goose.ProviderOption) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(dialect, db, files, append(options, goose.WithDisableGlobalRegistry(true))...)
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	have, target, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read the archive's version: %w", err)
	}
	if have > target {
		return hint.Errorf("run the version of paictl that wrote it, or a newer one",
			"the archive has version %d, but this program supports only %d", have, target)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("bring the archive to version %d: %w", target, err)
	}
	return nil
}
