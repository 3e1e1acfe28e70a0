package archive_test

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/archive"
)

func sum(content string) string {
	s := sha256.Sum256([]byte(content))
	return hex.EncodeToString(s[:])
}

func readCode(t *testing.T, s archive.Store, sum string) (string, int64) {
	t.Helper()
	r, size, err := s.Code(t.Context(), sum)
	require.NoError(t, err)
	defer r.Close()
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(data), size
}

func TestCodeComesBackAsItWent(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s := p.open(t)
		for name, content := range map[string]string{
			"nothing": "", "one chunk": "x", "a full chunk": strings.Repeat("y", 1<<20), "several chunks": strings.Repeat("0123456789abcdef", 200_000),
		} {
			t.Run(name, func(t *testing.T) {
				for range 2 {
					require.NoError(t, s.PutCode(t.Context(), "ann", sum(content), int64(len(content)), iotest.HalfReader(strings.NewReader(content))))
				}
				got, size := readCode(t, s, sum(content))
				assert.Equal(t, sum(content), sum(got))
				assert.Equal(t, int64(len(content)), size)
			})
		}
	})
}

func TestCodeInTheLongRowsOfAnEarlierPaictlIsRead(t *testing.T) {
	const content = "0123456789abcdef"
	path := filepath.Join(t.TempDir(), "archive.db")
	s, err := archive.Open(t.Context(), archive.Options{Path: path})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	long := strings.Repeat(content, 100_000) // rows of 1 MiB and the rest
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	_, err = db.ExecContext(t.Context(), "INSERT INTO code (upload, sha256, size, stored, complete) VALUES ('u', ?, ?, 0, TRUE)", sum(long), len(long))
	require.NoError(t, err)
	for n, row := range []string{long[:1<<20], long[1<<20:]} {
		_, err = db.ExecContext(t.Context(), "INSERT INTO code_chunks (upload, n, data) VALUES ('u', ?, ?)", n, []byte(row))
		require.NoError(t, err)
	}
	got, size := readCode(t, s, sum(long))
	assert.Equal(t, sum(long), sum(got))
	assert.Equal(t, int64(len(long)), size)
	r, _, err := s.Code(t.Context(), sum(long))
	require.NoError(t, err)
	n, err := r.Read(make([]byte, 1<<20))
	require.NoError(t, err)
	assert.Equal(t, 64<<10, n, "no more is in memory at a time")
}

func TestCodeThatIsNotWhatItIsSaidToBeLeavesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s := p.open(t)
		broken := errors.New("the line is cut")
		for name, c := range map[string]struct {
			sum  string
			size int64
			r    io.Reader
			want error
		}{
			"another content":       {sum("a"), 1, strings.NewReader("b"), archive.ErrMismatch},
			"too short":             {sum("ab"), 3, strings.NewReader("ab"), archive.ErrMismatch},
			"too long":              {sum("ab"), 1, strings.NewReader("ab"), archive.ErrMismatch},
			"without an end":        {sum("ab"), 5 << 20, endless{}, archive.ErrMismatch},
			"cut off":               {sum("ab"), 2, io.MultiReader(strings.NewReader("a"), iotest.ErrReader(broken)), broken},
			"larger than is taken":  {sum("ab"), 256<<20 + 1, endless{}, archive.ErrTooLarge},
			"no size":               {sum("ab"), -1, strings.NewReader("ab"), archive.ErrBadQuery},
			"no checksum":           {"../../etc/passwd", 1, strings.NewReader("b"), archive.ErrBadQuery},
			"a checksum in capital": {strings.ToUpper(sum("ab")), 2, strings.NewReader("ab"), archive.ErrBadQuery},
		} {
			t.Run(name, func(t *testing.T) {
				require.ErrorIs(t, s.PutCode(t.Context(), "ann", c.sum, c.size, c.r), c.want)
				_, _, err := s.Code(t.Context(), c.sum)
				require.ErrorIs(t, err, archive.ErrNotFound)
				assert.Empty(t, p.content(t))
			})
		}
	})
}

// endless is a reader that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestCodeThatTwoSendAtATimeIsKeptOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s := p.open(t)
		content := bytes.Repeat([]byte("code"), 1<<19)
		const senders = 8
		done := make(chan error, senders)
		for range senders {
			go func() {
				done <- s.PutCode(t.Context(), "ann", sum(string(content)), int64(len(content)), bytes.NewReader(content))
			}()
		}
		for range senders {
			require.NoError(t, <-done)
		}
		got, _ := readCode(t, s, sum(string(content)))
		assert.Equal(t, sum(string(content)), sum(got))
		assert.Len(t, p.content(t), 1+32+1, "one upload, 32 rows of 64 KiB, one owner")
	})
}

func TestCodeOfOneUserIsBounded(t *testing.T) {
	s, err := archive.Open(t.Context(), archive.Options{Path: filepath.Join(t.TempDir(), "archive.db"), CodeLimit: 100, CodeLimitPerUser: 10})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	put := func(user, code string) error {
		return s.PutCode(t.Context(), user, sum(code), int64(len(code)), strings.NewReader(code))
	}
	require.NoError(t, put("ann", "123456"))
	err = put("ann", "78901")
	require.ErrorIs(t, err, archive.ErrTooLarge)
	assert.Contains(t, hint.Of(err), "retention.codeGiBPerUser")
	require.NoError(t, put("bob", "78901"), "others have room of their own")
	require.NoError(t, put("ann", "78901"), "what is already there takes no room")
}

func TestUploadsAtATimeKeepToTheLimit(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		p.CodeLimit, p.CodeLimitPerUser = 1000, 10
		s := p.open(t)
		const n = 16
		var begun sync.WaitGroup
		begun.Add(n)
		errs := make(chan error, n)
		for i := range n {
			go func() {
				code := strings.Repeat(string(rune('a'+i)), 10)
				begun.Done()
				begun.Wait()
				errs <- s.PutCode(t.Context(), "ann", sum(code), 10, strings.NewReader(code))
			}()
		}
		taken := 0
		for range n {
			if err := <-errs; err == nil {
				taken++
			} else {
				assert.ErrorIs(t, err, archive.ErrTooLarge)
			}
		}
		assert.Equal(t, 1, taken, "uploads of 10 bytes, where 10 are allowed")
		require.NoError(t, s.PutCode(t.Context(), "bob", sum("x"), 1, strings.NewReader("x")))
	})
}

func TestCodeWithoutAnOwnerIsNoUsers(t *testing.T) {
	s, err := archive.Open(t.Context(), archive.Options{Path: filepath.Join(t.TempDir(), "archive.db"), CodeLimit: 20, CodeLimitPerUser: 10})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	for _, code := range []string{"123456789", "987654321"} {
		require.NoError(t, s.PutCode(t.Context(), "", sum(code), 9, strings.NewReader(code)))
	}
	assert.ErrorIs(t, s.PutCode(t.Context(), "", sum("123"), 3, strings.NewReader("123")), archive.ErrTooLarge, "the limit of all counts")
}

func TestCodeOfAllJobsTogetherIsBounded(t *testing.T) {
	s, err := archive.Open(t.Context(), archive.Options{Path: filepath.Join(t.TempDir(), "archive.db"), CodeLimit: 10})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	put := func(code string) error {
		return s.PutCode(t.Context(), "ann", sum(code), int64(len(code)), strings.NewReader(code))
	}
	require.NoError(t, put("123456"))
	err = put("78901")
	require.ErrorIs(t, err, archive.ErrTooLarge)
	assert.Contains(t, hint.Of(err), "retention.codeGiB")
	require.NoError(t, put("123456"), "what is already there takes no room")
	require.NoError(t, put("7890"))
}

func TestWhoSendsCodeOwnsItAndWhoKnowsItsChecksumDoesnt(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s, ctx := p.open(t), t.Context()
		const content = "the code of ann"
		owns := func(owner string) bool {
			yes, err := s.OwnsCode(ctx, owner, sum(content))
			require.NoError(t, err)
			return yes
		}
		put := func(owner, body string) error {
			return s.PutCode(ctx, owner, sum(content), int64(len(content)), strings.NewReader(body))
		}
		assert.False(t, owns("ann"))
		require.NoError(t, put("ann", content))
		assert.True(t, owns("ann"))
		assert.False(t, owns("mallory"))
		for _, body := range []string{"", content[1:], content + "x", strings.ToUpper(content)} {
			require.ErrorIs(t, put("mallory", body), archive.ErrMismatch)
		}
		assert.False(t, owns("mallory"))
		require.NoError(t, put("bob", content), "who has it has it")
		assert.True(t, owns("bob"))
		require.NoError(t, put("", ""), "an operator's client sends nothing where it is there")
		assert.False(t, owns(""))
		_, err := s.OwnsCode(ctx, "ann", "../etc")
		require.ErrorIs(t, err, archive.ErrBadQuery)

		p.Now = func() time.Time { return time.Now().Add(48 * time.Hour) }
		require.NoError(t, s.Close())
		s = p.open(t)
		_, err = s.Prune(ctx, time.Time{}, nil)
		require.NoError(t, err)
		assert.False(t, owns("ann"), "code that no one needs goes with its owners")
		require.NoError(t, put("mallory", content))
		assert.False(t, owns("ann"))
	})
}
