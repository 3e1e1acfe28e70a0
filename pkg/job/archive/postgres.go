package archive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// connections is the maximum number of connections from one replica to the database.
const connections = 16

// openPostgres connects to a database. Its errors don't contain the DSN, because the DSN may contain a password.
func (d *database) openPostgres(ctx context.Context, dsn string) error {
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		return errors.New("the DSN of the PostgreSQL database is not valid: write postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full")
	}
	c.RuntimeParams["application_name"] = "pai-controller"
	db := stdlib.OpenDB(*c)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	// Two replicas may start at the same time, so migrations hold a lock.
	one, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 120))
	if err != nil {
		return errors.Join(err, db.Close())
	}
	if err := migrate(ctx, goose.DialectPostgres, db, goose.WithSessionLocker(one)); err != nil {
		return errors.Join(fmt.Errorf("PostgreSQL on %s:%d, database %s: %w", c.Host, c.Port, c.Database, err), db.Close())
	}
	d.read, d.writer, d.dollars = db, parallel{db}, true
	d.tidy = func(context.Context) error { return nil } // autovacuum
	return nil
}

// parallel is a writer for a database that supports several writers at the same time.
type parallel struct{ db *sql.DB }

func (p parallel) write(ctx context.Context, statements []statement) error {
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("write to the archive: %w", err)
	}
	if err := execAll(ctx, tx, statements); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("write to the archive: %w", err)
	}
	return nil
}

// close doesn't close the connections, because the database also reads over them and closes them itself.
func (parallel) close() error { return nil }
