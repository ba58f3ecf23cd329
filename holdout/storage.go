package holdout

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// storageError says an error of the data directory in the service's words: the machine failed, not what was sent, so the same
// request can succeed later. Errors with a kind keep it, and what is no error of the machine stays as it is.
func storageError(err error) error {
	if err == nil || KindOf(err) != Internal {
		return err
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &Error{Kind: DiskFull, Detail: "the disk of the data directory is full; make room and send the request again", Err: err}
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EAGAIN):
		return &Error{Kind: Unavailable, Detail: "the server is short of memory or open files; send the request again", Err: err}
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return &Error{Kind: Unavailable, Detail: "the server cannot write to its data directory; its log names the file", Err: err}
	case errors.Is(err, syscall.EIO):
		return &Error{Kind: Unavailable, Detail: "the disk of the data directory fails; the server's log names the file", Err: err}
	}
	return err
}

// checkDirectories makes and removes a file where uploads begin, and looks whether holdouts can be put where they belong.
func (s *Service) checkDirectories() error {
	f, err := os.CreateTemp(s.path(temporaryDir), "ready-*")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err == nil {
		_, err = os.Stat(s.path(holdoutsDir))
	}
	if err != nil {
		return storageError(fmt.Errorf("holdout: data directory: %w", err))
	}
	return nil
}

// checkServerKey makes sure that the key by which a new holdout's secrets are sealed is still in its file: the next start could
// not open them without it. One that is kept elsewhere is not asked for again.
func (s *Service) checkServerKey() error {
	if s.elsewhere {
		return nil
	}
	secret, err := readServerSecret(s.path(serverKeyFile))
	if err == nil && secret.derive("digest") != s.digest {
		err = errors.New("holdout: it is another key than at the start")
	}
	if err != nil {
		return &Error{Kind: Unavailable, Err: err,
			Detail: "server.key is missing or is not the one that the server started with; put it back before anything new is created"}
	}
	return nil
}
