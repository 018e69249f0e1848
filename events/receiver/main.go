// Command receiver is a sample receiver of webhooks: it verifies what it gets, answers at
// once, and prints one line for each event, once.
//
//	WEBHOOK_SECRET=whsec_… go run ./events/receiver -listen 127.0.0.1:9000
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9000", "address to listen on")
	flag.Parse()
	secret := os.Getenv("WEBHOOK_SECRET")
	if secret == "" {
		log.Fatal("set WEBHOOK_SECRET to the endpoint's signing secret")
	}
	server := &http.Server{
		Addr: *listen, Handler: newReceiver(secret, time.Now, os.Stdout),
		ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
	}
	fmt.Fprintf(os.Stderr, "receiving webhooks at http://%s\n", *listen)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
}
