// Package reader implements the program paictl-history, which reads jobs from the database of a cluster of OpenPAI.
// In: the cluster's PostgreSQL, which is only read, and paictl, which knows the existing jobs. Out: parts of a history, in the format that the job
// controller accepts; the number of jobs of each person, the jobs that are left out, and why.
package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/openpai/paictl/pkg/hint"
)

// Source is a database of OpenPAI. It must not be used by several goroutines.
type Source struct {
	conn *pgx.Conn
	// columns holds the existing columns as TABLE.COLUMN, because earlier releases of OpenPAI had fewer columns.
	columns map[string]bool
}

const (
	connectTimeout = 20 * time.Second
	// maxFile is the maximum size in bytes of a file with an address. Real addresses are much shorter.
	maxFile = 64 << 10
	remedy  = "write postgres://USER@HOST:5432/DATABASE; in OpenPAI the database is openpai and runs on a master. " +
		"The password is taken from PGPASSWORD, from ~/.pgpass or PGPASSFILE, or name a file that has the whole address"
)

// Open connects to a database. from is an address without a password, or the name of a file that contains an address, which may include the
// password. Errors contain no password.
func Open(ctx context.Context, from string) (*Source, error) {
	address, err := addressOf(from)
	if err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(address)
	if err != nil { // its text may show a part of the password
		return nil, hint.Errorf(remedy, "the address of OpenPAI's database can't be read")
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	config.RuntimeParams["application_name"] = "paictl"
	config.RuntimeParams["default_transaction_read_only"] = "on"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, refused(ctx, err)
	}
	s := &Source{conn: conn}
	if err := s.readColumns(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// refused converts the error of a failed connection to an error that tells the user how to repair it.
func refused(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	said, ok := errors.AsType[*pgconn.PgError](err)
	if ok && (said.Code == "28P01" || said.Code == "28000") {
		return hint.Errorf("give the password in PGPASSWORD, in ~/.pgpass or PGPASSFILE, or in a file that --history-from names", "OpenPAI's database refuses the user: %w", err)
	}
	return hint.Errorf("check that the address is right, and that this machine reaches it: "+remedy, "connect to OpenPAI's database: %w", err)
}

// Close closes the connection to the database.
func (s *Source) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout) // the context of the work may have ended
	defer cancel()
	return s.conn.Close(ctx)
}

func isAddress(text string) bool {
	return strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
}

func addressOf(from string) (string, error) {
	if isAddress(from) {
		return from, noPassword(from)
	}
	f, err := os.Open(from)
	if err != nil && mayHidePassword(from) {
		return "", hint.Errorf(remedy, "--history-from is neither an address that starts with postgres:// nor a file that can be read here; it isn't shown, since it may have a password")
	}
	if err != nil {
		return "", hint.Wrap(fmt.Errorf("read the address of OpenPAI's database: %w", err), remedy)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		return "", hint.Errorf("keep it to yourself: chmod 600 "+from, "others may read %s, which has the address of OpenPAI's database", from)
	}
	text, readErr := io.ReadAll(io.LimitReader(f, maxFile))
	if err := errors.Join(err, readErr); err != nil {
		return "", fmt.Errorf("read the address of OpenPAI's database: %w", err)
	}
	address := strings.TrimSpace(string(text))
	if !isAddress(address) {
		return "", hint.Errorf("write postgres://USER:PASSWORD@HOST:5432/DATABASE into it", "%s has no address of a PostgreSQL database", from)
	}
	return address, nil
}

// mayHidePassword reports whether a text may be an address with a password in another form, such as PostgreSQL's "host=db password=x", or
// alice:x@db. It is called for texts that aren't the name of a file.
func mayHidePassword(text string) bool {
	return strings.ContainsAny(text, "=@") || strings.Contains(text, "://")
}

// noPassword returns an error for an address that contains a password, because other users of the machine can see the arguments of commands.
func noPassword(address string) error {
	u, err := url.Parse(address)
	if err != nil { // its text may show a password
		return hint.Errorf(remedy, "the address of OpenPAI's database can't be read")
	}
	_, given := u.User.Password()
	if given || u.Query().Has("password") || u.Query().Has("sslpassword") {
		return hint.Errorf(remedy, "a password on the command line can be seen by others")
	}
	return nil
}

// needed lists the columns of the table of jobs that every database of OpenPAI has.
var needed = []string{
	"name", "userName", "jobName", "jobConfig", "virtualCluster", "jobPriority", "submissionTime", "subState", "snapshot",
}

// frameworks is the name of OpenPAI's table of jobs. attemptsTable and the following constants are the names of the tables with data about jobs.
const (
	frameworks    = "frameworks"
	attemptsTable = "framework_history"
	tasksTable    = "task_history"
	eventsTable   = "framework_events"
	tagsTable     = "tags"
)

func (s *Source) readColumns(ctx context.Context) error {
	rows, err := s.conn.Query(ctx, "SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = ANY (current_schemas(false))")
	if err != nil {
		return reading(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return reading(err)
	}
	s.columns = make(map[string]bool, len(all))
	for _, c := range all {
		s.columns[c] = true
	}
	if !s.has(frameworks, needed...) {
		return hint.Errorf("name the database that OpenPAI's rest-server uses, and a user who may read it", "the database has no table of jobs as OpenPAI writes it, or you may not read it")
	}
	return nil
}

// has reports whether a table has all of the given columns.
func (s *Source) has(table string, columns ...string) bool {
	for _, c := range columns {
		if !s.columns[table+"."+c] {
			return false
		}
	}
	return true
}

func reading(err error) error { return fmt.Errorf("read OpenPAI's database: %w", err) }
