package reader

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/postgrestest"
	"github.com/openpai/paictl/pkg/openpai/history/historytest"
)

func TestADatabaseIsOnlyRead(t *testing.T) {
	s := source(t, historytest.New(t))
	_, err := s.conn.Exec(t.Context(), "DELETE FROM frameworks")
	require.ErrorContains(t, err, "read-only")
}

const password = "hunter2-of-the-database"

// asOther returns the address of a database for a user with a password. The user may exist already, because all databases of the server have the
// same users.
func asOther(d *historytest.Database) string {
	d.Exec("DO $$ BEGIN CREATE ROLE " + postgrestest.WithPassword + " LOGIN PASSWORD '" + password + "'; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
	d.Exec("GRANT SELECT ON ALL TABLES IN SCHEMA public TO " + postgrestest.WithPassword)
	return d.As(postgrestest.WithPassword)
}

func TestPasswordsComeFromAFileOrTheEnvironment(t *testing.T) {
	address := asOther(historytest.New(t))
	whole := strings.Replace(address, "@", ":"+password+"@", 1)
	t.Setenv("HOME", t.TempDir())
	file := filepath.Join(t.TempDir(), "address")
	opens := func(from string) error {
		t.Helper()
		s, err := Open(t.Context(), from)
		if err == nil {
			return s.Close()
		}
		assert.NotContains(t, err.Error()+hint.Of(err), password)
		assert.NotEmpty(t, hint.Of(err))
		return err
	}
	require.ErrorContains(t, opens(address), "refuses the user")
	require.ErrorContains(t, opens(whole), "command line")
	require.ErrorContains(t, opens(address+"&password="+password), "command line")
	require.ErrorContains(t, opens(address+"&sslpassword="+password), "command line")
	require.ErrorContains(t, opens("postgres://a:"+password+"@[::1"), "can't be read")

	require.NoError(t, os.WriteFile(file, []byte(whole+"\n"), 0o644))
	require.ErrorContains(t, opens(file), "others may read")
	require.NoError(t, os.Chmod(file, 0o600))
	require.NoError(t, opens(file))
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(whole, password, password+"x", 1)), 0o600))
	require.ErrorContains(t, opens(file), "refuses the user")
	require.NoError(t, os.WriteFile(file, []byte("PGPASSWORD="+password), 0o600))
	require.ErrorContains(t, opens(file), "no address")
	require.NoError(t, os.WriteFile(file, []byte("postgres://a:"+password+"@b:port/c"), 0o600))
	require.ErrorContains(t, opens(file), "can't be read")
	require.ErrorContains(t, opens(filepath.Join(t.TempDir(), "none")), "no such file")
	require.ErrorContains(t, opens("postgres://root@127.0.0.1:1/openpai?connect_timeout=2"), "connect to OpenPAI's database")

	t.Setenv("PGPASSWORD", password)
	require.NoError(t, opens(address))
}

func TestAddressesInOtherFormsAreRefusedWithoutShowingThem(t *testing.T) {
	for _, from := range []string{
		"host=db user=alice password=hunter2 pass word2",
		"host=db user=alice password='hunter2 word2'",
		"password = hunter2/word2",
		"alice:hunter2word2@db:5432/openpai",
		"POSTGRES://alice:hunter2word2@db:5432/openpai",
		"jdbc:postgresql://db/hunter2word2",
		"password=hunter2word2" + strings.Repeat("x", 300), // too long for a file's name
	} {
		_, err := Open(t.Context(), from)
		require.ErrorContains(t, err, "neither an address that starts with postgres://", from)
		assert.Contains(t, hint.Of(err), "PGPASSWORD")
		for _, part := range []string{"hunter2", "word2", "alice"} {
			assert.NotContains(t, err.Error()+hint.Of(err), part)
		}
	}
	file := filepath.Join(t.TempDir(), "user=alice@db")
	require.NoError(t, os.WriteFile(file, []byte("nothing"), 0o600))
	_, err := Open(t.Context(), file)
	require.ErrorContains(t, err, "has no address", "a file may have any name")
}

func TestOtherDatabasesAreRefused(t *testing.T) {
	d := historytest.New(t)
	d.Exec(`ALTER TABLE frameworks DROP COLUMN snapshot`)
	_, err := Open(t.Context(), d.Address)
	require.ErrorContains(t, err, "no table of jobs as OpenPAI writes it")
}
