package target

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// After an end of file, the S3 library completes the upload as an archive.
func TestAnArchiveThatIsTooLargeOrEndsEarlyIsNotTakenForAWholeOne(t *testing.T) {
	got, err := io.ReadAll(&limited{strings.NewReader("12345"), 5})
	require.NoError(t, err)
	assert.Equal(t, "12345", string(got))
	_, err = io.ReadAll(&limited{strings.NewReader("123456"), 5})
	require.ErrorIs(t, err, errTooLarge)
	_, err = io.ReadAll(&limited{iotest.ErrReader(io.ErrUnexpectedEOF), 5})
	require.ErrorContains(t, err, "ends early")
	assert.NotErrorIs(t, err, io.ErrUnexpectedEOF)
}
