package archive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
)

// batch is how many waiting writes share one transaction. Each commit waits for the disk. With a commit for each write, the writes for a thousand
// jobs that finish together would wait for seconds.
const batch = 64

var errClosed = errors.New("the archive is closed")

// serial is a writer for a database that supports only one writer at a time. One goroutine takes the waiting writes and commits them together. If
// one of these writes fails, only that write is rolled back.
type serial struct {
	db    *sql.DB
	queue chan request
	end   func()        // closes stop, once
	stop  chan struct{} // closed: it takes no more writes
	done  chan struct{} // closed: the queue is empty
}

type request struct {
	statements []statement
	answer     chan error // buffered, because the caller may have given up
}

func newSerial(db *sql.DB) *serial {
	s := &serial{db: db, queue: make(chan request), stop: make(chan struct{}), done: make(chan struct{})}
	s.end = sync.OnceFunc(func() { close(s.stop) })
	go s.run()
	return s
}

func (s *serial) write(ctx context.Context, statements []statement) error {
	if err := ctx.Err(); err != nil {
		return err // if the writer is ready, too, select could choose it
	}
	r := request{statements, make(chan error, 1)}
	select {
	case s.queue <- r:
	case <-s.stop:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-r.answer:
		return err
	case <-ctx.Done():
		return ctx.Err() // the write may have succeeded; a repetition changes nothing
	}
}

func (s *serial) close() error {
	s.end()
	<-s.done
	return s.db.Close()
}

func (s *serial) run() {
	defer close(s.done)
	for {
		select {
		case r := <-s.queue:
			s.commit(s.gather(r))
		case <-s.stop:
			return
		}
	}
}

// gather returns the first request and the requests that are already waiting, up to batch requests in all.
func (s *serial) gather(first request) []request {
	out := []request{first}
	for len(out) < batch {
		select {
		case r := <-s.queue:
			out = append(out, r)
		default:
			return out
		}
	}
	return out
}

// commit runs requests in one transaction, and sends each request its result. It doesn't use the contexts of the requests, because if a statement
// is interrupted, SQLite rolls back the whole transaction, with the writes of the other requests.
func (s *serial) commit(requests []request) {
	ctx := context.Background()
	results := make([]error, len(requests))
	err := func() error {
		tx, err := s.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		for i, r := range requests {
			if results[i], err = attempt(ctx, tx, r.statements); err != nil {
				return errors.Join(err, tx.Rollback())
			}
		}
		return tx.Commit()
	}()
	for i, r := range requests {
		if err != nil {
			results[i] = fmt.Errorf("write to the archive: %w", err)
		}
		r.answer <- results[i]
	}
}

// attempt runs the statements of one request. own is an error that affects only this request. all is an error that affects the whole transaction.
func attempt(ctx context.Context, tx *sql.Tx, statements []statement) (own, all error) {
	if _, err := tx.ExecContext(ctx, "SAVEPOINT request"); err != nil {
		return nil, err
	}
	own = execAll(ctx, tx, statements)
	if own != nil {
		if _, err := tx.ExecContext(ctx, "ROLLBACK TO request"); err != nil {
			return own, errors.Join(own, err)
		}
	}
	_, all = tx.ExecContext(ctx, "RELEASE request")
	return own, all
}

func execAll(ctx context.Context, tx *sql.Tx, statements []statement) error {
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s.query, s.args...); err != nil {
			return fmt.Errorf("write to the archive: %w", err)
		}
	}
	return nil
}
