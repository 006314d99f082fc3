# ocaml-nox
cat >a.ml <<X
let () = let h = Hashtbl.create 10 in for i = 0 to 300000 do Hashtbl.replace h (i mod 5000) (String.make (i mod 300) 'x') done; Printf.printf "%d\n" (Hashtbl.length h);
let ds = List.init 4 (fun _ -> Domain.spawn (fun () -> let l = List.init 100000 string_of_int in List.length l)) in List.iter (fun d -> Printf.printf "%d\n" (Domain.join d)) ds
X
$ON ocamlfind ocamlopt a.ml -o a 2>>err || $ON ocamlopt a.ml -o a && $ON ./a
