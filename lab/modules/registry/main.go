// An OCI registry that keeps its things in a folder and knows its users from a file. The lab makes
// that file too, from a password in a file, with `registry hash FILE`.
package main

import (
	"fmt"
	"os"

	"github.com/distribution/distribution/v3/registry"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
	"golang.org/x/crypto/bcrypt"
)

func main() {
	run := registry.RootCmd.Execute
	if len(os.Args) == 3 && os.Args[1] == "hash" {
		run = hash
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func hash() error {
	password, err := os.ReadFile(os.Args[2])
	if err != nil {
		return err
	}
	hashed, err := bcrypt.GenerateFromPassword(password, bcrypt.DefaultCost)
	if err != nil {
		return err
	}
	_, err = fmt.Println(string(hashed))
	return err
}
