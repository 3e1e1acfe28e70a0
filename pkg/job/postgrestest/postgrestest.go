// Package postgrestest runs a real PostgreSQL server in tests.
// In: the programs of PostgreSQL, if the machine has them. Out: empty databases.
package postgrestest

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/test/tier"
)

// server is the PostgreSQL server for all tests of a package. Its data and its socket are in a separate folder. The server ends with the tests.
type server struct {
	dir     string
	process *exec.Cmd
	why     string // the reason why no server runs
	err     error
	count   atomic.Int64
}

var (
	one   = sync.OnceValue(begin)
	asked atomic.Bool
)

// Stop stops the server if a test has used it. TestMain must call Stop.
func Stop() {
	if asked.Load() {
		one().stop()
	}
}

// DSN creates an empty database and returns its data source name. It skips the test if the machine has no PostgreSQL.
func DSN(t testing.TB) string {
	t.Helper()
	tier.More(t, "PostgreSQL")
	s := one()
	if s.why != "" {
		t.Skip("skipped: " + s.why)
	}
	require.NoError(t, s.err)
	name := fmt.Sprintf("test%d", s.count.Add(1))
	db, err := sql.Open("pgx", s.dsn("postgres"))
	require.NoError(t, err)
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(t.Context(), "CREATE DATABASE "+name)
	require.NoError(t, err)
	return s.dsn(name)
}

func (s *server) dsn(database string) string {
	return "host=" + s.dir + " user=postgres dbname=" + database
}

func begin() *server {
	asked.Store(true)
	s := &server{}
	initdb, postmaster := program("initdb"), program("postgres")
	if initdb == "" || postmaster == "" {
		s.why = "this machine has no PostgreSQL: apt-get install postgresql"
		return s
	}
	as, err := account()
	if err != nil {
		s.why = err.Error()
		return s
	}
	s.err = s.start(as, initdb, postmaster)
	return s
}

func (s *server) start(as *syscall.Credential, initdb, postmaster string) error {
	var err error
	// The path of a socket has at most 107 bytes, and the temporary folder of a test may have a longer path.
	if s.dir, err = os.MkdirTemp("", "pai-postgres"); err != nil {
		return err
	}
	if as != nil {
		if err := os.Chown(s.dir, int(as.Uid), int(as.Gid)); err != nil {
			return err
		}
	}
	data := filepath.Join(s.dir, "data")
	command := func(path string, args ...string) *exec.Cmd {
		c := exec.CommandContext(context.Background(), path, args...)
		c.Dir = s.dir
		// Pdeathsig stops the server at the end of the tests, even if they are killed.
		c.SysProcAttr = &syscall.SysProcAttr{Credential: as, Pdeathsig: syscall.SIGQUIT}
		return c
	}
	out, err := command(initdb, "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync").CombinedOutput()
	if err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	if err := s.askPassword(data); err != nil {
		return err
	}
	s.process = command(postmaster, "-D", data, "-k", s.dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=200")
	if s.process.Stderr, err = os.Create(filepath.Join(s.dir, "log")); err != nil {
		return err
	}
	if err := s.process.Start(); err != nil {
		return err
	}
	return s.answers()
}

// WithPassword is the only role that needs a password. It doesn't exist until a test creates it.
const WithPassword = "with_password"

// askPassword configures the server to require a password for the role WithPassword.
func (*server) askPassword(data string) error {
	file := filepath.Join(data, "pg_hba.conf")
	rules, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte("local all "+WithPassword+" scram-sha-256\n"), rules...), 0o600)
}

// answers waits until the server accepts connections, and returns an error if this takes too long.
func (s *server) answers() error {
	db, err := sql.Open("pgx", s.dsn("postgres")+" connect_timeout=1")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	for range 600 {
		if err = db.PingContext(context.Background()); err == nil {
			return nil
		}
		_ = exec.CommandContext(context.Background(), "sleep", "0.1").Run() // between two attempts
	}
	return fmt.Errorf("PostgreSQL doesn't answer: %w", err)
}

func (s *server) stop() {
	if s.process != nil && s.process.Process != nil {
		_ = s.process.Process.Signal(syscall.SIGQUIT) // at once: its data isn't kept
		_ = s.process.Wait()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

// program returns the path of a program. It searches PATH, and then Debian's folders for PostgreSQL, starting with the newest release. It returns
// "" if the program isn't found.
func program(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	found, err := fs.Glob(os.DirFS("/"), "usr/lib/postgresql/*/bin/"+name)
	if err != nil || len(found) == 0 {
		return ""
	}
	release := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	return "/" + slices.MaxFunc(found, func(a, b string) int { return release(a) - release(b) })
}

// account returns the user that runs the server, or nil for the current user. Root needs another user, because PostgreSQL doesn't run as root.
func account() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("no account to run PostgreSQL as: apt-get install postgresql: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}
