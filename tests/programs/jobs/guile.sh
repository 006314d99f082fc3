# guile-3.0
$ON guile --no-auto-compile -c '(define (f n) (if (= n 0) (list) (cons (make-string (modulo n 100) #\a) (f (- n 1))))) (display (length (f 300000))) (newline)'
